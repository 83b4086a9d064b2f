"""`flashbulb report`: a study, or any runs, as one page that needs no network.

subjects.py   which runs, and which of them are seeds of the same thing
curves.py     what is drawn over steps, and CPO's cases
tables.py     what was run, and the table of numbers
replay.py     evaluation episodes, played again and recorded
  from_above.py   what an arena's episode shows
  from_beside.py  what a runner's episode shows
  fears.py        the flashbulb memory as a map of the arena
packing.py    numbers as short text
page.py       all of it as one HTML file
assets/       its template, style and script
"""
