"""The experiments that measure what payback is worth, in the order of the data.

Environment, intrinsic reward, scheme, learner, experiment, run, record, report. Nothing here carries the guarantee: the
learners call the library's transforms.
"""
