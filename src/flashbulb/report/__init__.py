"""The report: studies and runs as one HTML page that needs no network.

Holds the page's data in Python (run_groups, curves, tables, replay, views, encoding, page) and its view in assets/.
May use every package but `theory` and `cli`.
"""
