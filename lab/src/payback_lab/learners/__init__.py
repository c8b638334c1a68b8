"""The paper's learners, each with a `make_train` that returns the functions to train with."""
