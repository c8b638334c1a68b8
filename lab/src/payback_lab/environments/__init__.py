"""The environments, as pure functions: the paper's cliffs and DoorKey, and other tasks of MiniGrid."""
