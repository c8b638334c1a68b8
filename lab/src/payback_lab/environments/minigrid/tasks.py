"""The tasks by name: what an episode is, apart from its layout."""

from typing import Literal, NamedTuple, get_args

from payback_lab.environments.minigrid.tiles import BALL, BOX, COLOURS

Payment = Literal["one", "minigrid"]


class Task(NamedTuple):
    """Describe one task; the functions of this package take it first."""

    name: str
    width: int
    height: int
    max_steps: int
    """Steps after which an episode is truncated."""
    target: int = 0
    """Kind of the object whose being picked up solves the task; 0 where reaching a goal square does."""
    sees_through_walls: bool = False
    noisy: bool = False
    """Whether the action DONE repaints every ball in a random colour: a noisy TV."""
    payment: Payment = "one"
    """Reward of success: "one", or "minigrid", 1 − 0.9·t/max_steps; 0 everywhere else."""

    @property
    def cells(self) -> int:
        """Return the number of cells of the grid."""
        return self.width * self.height

    @property
    def places(self) -> int:
        """Return how many places `rules.place` tells apart: (x, y, carrying something), and a noisy TV's colour."""
        return 2 * self.cells * (COLOURS if self.noisy else 1)


class Entry(NamedTuple):
    """Say how the `minigrid` package makes a task, and what of it the package's class does not tell."""

    maker: str
    """Name of the class in `minigrid.envs`."""
    arguments: tuple[tuple[str, int | bool], ...]
    target: int = 0
    noisy: bool = False


NOISY = "-NoisyTV"


def _corridor(room: int, rows: int) -> Entry:
    return Entry("KeyCorridorEnv", (("room_size", room), ("num_rows", rows)), target=BALL)


def _rooms(number: int, largest: int, noisy: bool = False) -> Entry:
    numbers = (("minNumRooms", number), ("maxNumRooms", number), ("maxRoomSize", largest))
    return Entry("MultiRoomEnv", numbers, noisy=noisy)


def _maze(hidden: bool) -> Entry:
    return Entry("ObstructedMaze_1Dlhb", (("key_in_box", hidden), ("blocked", False)), target=BALL)


TASKS: dict[str, Entry] = {
    **{f"DoorKey-{n}x{n}": Entry("DoorKeyEnv", (("size", n),)) for n in (5, 6, 8, 11, 13, 16)},
    "KeyCorridorS3R1": _corridor(3, 1),
    "KeyCorridorS3R2": _corridor(3, 2),
    "KeyCorridorS3R3": _corridor(3, 3),
    "KeyCorridorS4R3": _corridor(4, 3),
    "MultiRoom-N2-S4": _rooms(2, 4),
    "MultiRoom-N4-S5": _rooms(4, 5),
    "MultiRoom-N6": _rooms(6, 10),
    "ObstructedMaze-1Dl": _maze(hidden=False),
    "ObstructedMaze-1Dlh": _maze(hidden=True),
    "UnlockPickup": Entry("UnlockPickupEnv", (), target=BOX),
    **{
        f"LavaCrossingS{size}N{rivers}": Entry("CrossingEnv", (("size", size), ("num_crossings", rivers)))
        for size, rivers in ((9, 1), (9, 2), (9, 3), (11, 5))
    },
    "FourRooms": Entry("FourRoomsEnv", ()),
    **{f"Empty-{n}x{n}": Entry("EmptyEnv", (("size", n),)) for n in (5, 6, 8, 16)},
    **{
        f"MultiRoom-{name}{NOISY}": _rooms(number, largest, noisy=True)
        for name, number, largest in (("N2-S4", 2, 4), ("N4-S5", 4, 5), ("N6", 6, 10))
    },
}
"""Named as the package registers them, without "MiniGrid-" and the version; MultiRoom-N4-S5 is its v1, because the v0
of that name has six rooms. A noisy one is MultiRoom with a ball in its first room that the action DONE repaints."""


def entry_of(name: str) -> Entry:
    """Return how a task is made; DoorKey may have any size from 5 on. A name that is unknown raises a ValueError.

    >>> entry_of("DoorKey-9x9").arguments
    (('size', 9),)
    """
    if name in TASKS:
        return TASKS[name]
    size = name.removeprefix("DoorKey-").split("x")[0]
    if size.isdecimal() and name == f"DoorKey-{int(size)}x{int(size)}" and int(size) >= 5:
        return Entry("DoorKeyEnv", (("size", int(size)),))
    raise ValueError(
        f'there is no task "{name}"; choose among {", ".join(TASKS)}, or DoorKey of another size from 5 on'
    )


def refuse_payment(payment: str) -> None:
    """Refuse a reward of success that does not exist."""
    if payment not in get_args(Payment):
        raise ValueError(f'payment is {payment!r}; give "one" or "minigrid" (1 − 0.9·t/max_steps)')


def refuse_limit(max_steps: int) -> None:
    """Refuse a time limit that leaves no step, or a part of one."""
    if max_steps < 1 or max_steps != int(max_steps):
        raise ValueError(
            f"the time limit is {max_steps} steps, but it must be a whole number of at least one; leave it out for "
            "MiniGrid's own"
        )
