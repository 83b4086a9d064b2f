"""Theory: finite CMDPs with exact solutions, on which every statement of the paper is checked (docs/theory.md).

Holds the CMDPs, the checks by topic, and the table of `flashbulb theory` (statements.py).
May use the base modules and `memory`; `actual_step.py` also uses the CPO step and the margin of `algorithms`.
"""
