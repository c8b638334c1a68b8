"""The paper's learners: `make_train(config, scheme)` gives the function that trains."""
