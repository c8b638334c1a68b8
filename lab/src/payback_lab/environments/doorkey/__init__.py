"""MiniGrid's DoorKey in JAX, equal to the `minigrid` package."""
