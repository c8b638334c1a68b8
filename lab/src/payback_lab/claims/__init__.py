"""One engine for claims: a statement, the evidence it needs, the rule that decides it, and the verdict.

claim      DecidedClaim, what is stored and printed; from intervals to verdicts
evidence   Evidence: results by cell; Measure, and the figures of each cell
rules      rules for any experiment, and how they combine
decide     Claim, and Claims: all of one experiment, decided; how many seeds would decide one
wording    figures over seeds in words
"""
