"""One engine for claims: a sentence, the evidence it needs, the rule that decides it, and the verdict.

claim       Claim, what is stored and printed                 verdicts    from an interval to a verdict
sentence    Sentence, and Claims: all of one experiment       wording     figures over seeds in words
evidence    Evidence: results by cell; Measure                rules       rules for any experiment
figures     what was measured of each cell                    power       how many seeds would decide a sentence
comparison  two sets of seeds beside each other
"""
