"""The command line: `main.py` dispatches, `options.py` parses, and the commands are in three modules by subject.

A command's module is imported when the command is called, so that `flashbulb --help` stays fast.
May use every other package; no other package may use this one.
"""
