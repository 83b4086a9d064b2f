"""The larger verbs of the command line, a module each; `cli.py` imports one when it is called."""
