"""Studies: the paper's figures as sets of runs, run on this machine or on a Ray cluster.

Holds the catalogue, the plan of a study, its worker pools, its status table and the runner.
May use every package but `report`, `theory` and `cli`.
"""
