"""The paper's environments, as pure functions."""
