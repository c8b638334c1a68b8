"""The paper's experiments again, top to bottom the way of the data: environment, intrinsic reward, scheme,
learner, experiment, runner, records, report.

Needs the `paper` extra. Nothing here carries the guarantee: the learners call the core's transforms.
"""
