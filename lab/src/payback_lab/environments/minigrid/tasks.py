"""The tasks by name: what an episode is, apart from its layout."""

from typing import Literal, NamedTuple, get_args

from payback_lab.environments.minigrid.tiles import BALL, BLUE, BOX, COLOURS

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
    target_colour: int | None = None
    """Colour of that object; None where every object of the kind solves the task."""
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
    """Describe how the `minigrid` package makes a task, and add what the package's class does not expose."""

    maker: str
    """Name of the class in `minigrid.envs`."""
    arguments: tuple[tuple[str, int | bool | tuple[int, int]], ...]
    target: int = 0
    target_colour: int | None = None
    noisy: bool = False
    pool: int | None = None
    """Number of layouts in the task's pool where drawing is slow; None for `layouts.POOL`."""
    large: bool = False
    """Whether the task has too many states for the exact search, so that its fewest steps are a lower bound."""


NOISY = "-NoisyTV"


def _corridor(room: int, rows: int, large: bool = False) -> Entry:
    return Entry("KeyCorridorEnv", (("room_size", room), ("num_rows", rows)), target=BALL, large=large)


def _rooms(number: int, largest: int, noisy: bool = False, pool: int | None = None) -> Entry:
    numbers = (("minNumRooms", number), ("maxNumRooms", number), ("maxRoomSize", largest))
    return Entry("MultiRoomEnv", numbers, noisy=noisy, pool=pool)


def _maze(hidden: bool) -> Entry:
    return Entry("ObstructedMaze_1Dlhb", (("key_in_box", hidden), ("blocked", False)), target=BALL)


def _two_doors(maker: str, blocked: bool) -> Entry:
    arguments = (("agent_room", (2, 1)), ("key_in_box", True), ("blocked", blocked), ("num_quarters", 1))
    # The target has a colour, because the blockers of the doors are balls too.
    return Entry(maker, (*arguments, ("num_rooms_visited", 4)), target=BALL, target_colour=BLUE, large=blocked)


TASKS: dict[str, Entry] = {
    **{f"DoorKey-{n}x{n}": Entry("DoorKeyEnv", (("size", n),)) for n in (5, 6, 8, 11, 13, 16)},
    "KeyCorridorS3R1": _corridor(3, 1),
    "KeyCorridorS3R2": _corridor(3, 2),
    "KeyCorridorS3R3": _corridor(3, 3),
    "KeyCorridorS4R3": _corridor(4, 3),
    "KeyCorridorS5R3": _corridor(5, 3),
    "KeyCorridorS6R3": _corridor(6, 3, large=True),
    "MultiRoom-N2-S4": _rooms(2, 4),
    "MultiRoom-N4-S5": _rooms(4, 5),
    "MultiRoom-N6": _rooms(6, 10),
    "MultiRoom-N7-S8": _rooms(7, 8),
    "MultiRoom-N10-S10": _rooms(10, 10, pool=2_000),
    "MultiRoom-N12-S10": _rooms(12, 10, pool=1_000),
    "ObstructedMaze-1Dl": _maze(hidden=False),
    "ObstructedMaze-1Dlh": _maze(hidden=True),
    "ObstructedMaze-2Dlh": _two_doors("ObstructedMaze_Full", blocked=False),
    "ObstructedMaze-2Dlhb": _two_doors("ObstructedMaze_Full_V1", blocked=True),
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
"""Named as the package registers them, without "MiniGrid-" and the version; `short_name` takes these off. The package
does not register MultiRoom with 7, 10 and 12 rooms; their names and arguments are those of RIDE (Raileanu and
Rocktäschel, 2020). A noisy task is MultiRoom with a ball in its first room that the action DONE repaints."""


SECOND_VERSIONS = ("MultiRoom-N4-S5", "ObstructedMaze-2Dlhb")
"""These are the package's v1: the v0 of MultiRoom-N4-S5 has six rooms, and in that of ObstructedMaze-2Dlhb a blocker
can replace a key."""


def short_name(name: str) -> str:
    """Return a task's name here for the name that the package registers; others stay as they are.

    >>> short_name("MiniGrid-DoorKey-8x8-v0"), short_name("FourRooms")
    ('DoorKey-8x8', 'FourRooms')
    """
    short, _, version = name.removeprefix("MiniGrid-").rpartition("-v")
    if not name.startswith("MiniGrid-") or not version.isdecimal():
        return name
    ours = "1" if short in SECOND_VERSIONS else "0"
    if version != ours:
        raise ValueError(f'there is no task "{name}", only its version MiniGrid-{short}-v{ours}')
    return short


def entry_of(name: str) -> Entry:
    """Return how a task is made; DoorKey may have any size from 5 on. A name that is unknown raises a ValueError.

    >>> entry_of("DoorKey-9x9").arguments
    (('size', 9),)
    """
    name = short_name(name)
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
