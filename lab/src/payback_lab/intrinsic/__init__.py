"""The paper's intrinsic rewards F, as pure functions; the core shapes what they return."""
