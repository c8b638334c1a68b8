"""MiniGrid in JAX, equal to the `minigrid` package step by step, on layouts that the package itself has drawn."""
