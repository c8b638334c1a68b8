"""The arena's tasks in two numbers each: the fewest steps on the layouts of the evaluation, and the time limit."""

from collections.abc import Mapping

FEWEST: Mapping[str, float] = {
    "DoorKey-8x8": 16.749,
    "DoorKey-11x11": 23.205,
    "DoorKey-13x13": 27.703,
    "MultiRoom-N4-S5": 20.240,
    "MultiRoom-N4-S5-NoisyTV": 20.497,
    "MultiRoom-N6": 46.178,
    "LavaCrossingS9N2": 15.995,
    "FourRooms": 15.936,
    "UnlockPickup": 16.490,
    "KeyCorridorS3R3": 20.642,
    "ObstructedMaze-1Dlh": 17.469,
}
"""Mean over the 1,000 evaluated layouts, by breadth-first search (`optimum.py` prints it)."""
LIMITS: Mapping[str, int] = {
    "DoorKey-8x8": 640,
    "DoorKey-11x11": 1210,
    "DoorKey-13x13": 1690,
    "MultiRoom-N4-S5": 80,
    "MultiRoom-N4-S5-NoisyTV": 80,
    "MultiRoom-N6": 120,
    "LavaCrossingS9N2": 324,
    "FourRooms": 100,
    "UnlockPickup": 288,
    "KeyCorridorS3R3": 270,
    "ObstructedMaze-1Dlh": 288,
}
"""The task's own time limit, in steps."""
SAMPLED: Mapping[str, int] = {"ObstructedMaze-2Dlhb": 200}
"""Number of evaluated layouts, the first ones, that are searched instead of all 1,000 because the search is slow."""
