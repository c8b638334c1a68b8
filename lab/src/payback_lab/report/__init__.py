"""The report: what was measured, beside what the paper says.

summary.py   runs → one small Summary per experiment; stored in results/<experiment>/ and read back
tables.py    Summary → numbers over seeds: curves, figures by scheme, policy maps, settings
figures.py   numbers → charts of curves and final returns
grids.py     numbers → charts of the grid and of the policies
page.py      all of it → report.html and figures/
"""
