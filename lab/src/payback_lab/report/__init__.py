"""The report and the tables of docs/: what was measured, beside what the paper says.

summary.py   runs → one small Summary per experiment
store.py     summaries on disk: lab/results/<experiment>/, written, read back, and added to
tables.py    Summary → numbers over seeds: curves, figures by scheme, policy maps, settings
charts/      numbers → charts
page.py      all of it → report.html; cards.py is its first screen
docs.py      `payback-lab docs`: the tables and figures of docs/, page by page
command.py   `payback-lab report`
"""
