"""MiniGrid DoorKey."""
