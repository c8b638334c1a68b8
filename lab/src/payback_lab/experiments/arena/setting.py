"""The names of the arena's settings, like DoorKey-11x11_a0.02_g0.995_t400_rnd_z0.2-0.5: read and written here.

DoorKey-11x11   the task, as `environments/minigrid/tasks.py` names it
a0.02           α of the bonus
g0.995          γ, one for learner and repayment; 0.995 if left out
t400            another time limit than the task's own, in steps
n256            steps of each environment per update, 128 if left out
views           the bonus: see `BONUS_NAMES`; episodic counts of the simulator's state if left out
z0.2-0.5        ζ of pies, phased and adopes rises from 0 at a fifth to 1 at half of training; as the config has it
                if left out
"""

import re
from typing import NamedTuple

from payback_lab.environments.minigrid.tasks import entry_of
from payback_lab.experiments.doorkey.config import refuse_alpha_or_gamma
from payback_lab.learners.arena.config import refuse_schedule
from payback_lab.user_error import UserError

GAMMA = 0.995
LONGEST = 2**31 - 1
"""The longest time limit: steps are counted in int32."""
NUMBER = r"-?\d+(?:\.\d+)?"
BONUS_NAMES = ("counts", "views", "rnd", "rnd-views", "e3b", "noveld", "icm")
"""The bonuses, as `learners/arena/bonus.py` makes them; it is not imported here, because it needs JAX."""
NAMES = {"a": "α", "g": "γ", "t": "the time limit", "n": "the rollout's length", "z": "ζ", "bonus": "the bonus"}
FORM = (
    "write task, α and γ like DoorKey-11x11_a0.02_g0.995, then _t400 for a time limit, _n256 for the steps per update, "
    f"a bonus ({', '.join(BONUS_NAMES[1:])}), _z0.2-0.5 for ζ"
)


class Setting(NamedTuple):
    """Hold what a setting's name says."""

    task: str
    alpha: float
    gamma: float = GAMMA
    max_steps: int | None = None
    """None for the task's own time limit."""
    bonus: str = "counts"
    rollout: int | None = None
    """Steps of each environment per update; None for the config's."""
    schedule: tuple[float, float] | None = None
    """The shares of training at which ζ leaves 0 and reaches 1; None for the config's."""

    @property
    def name(self) -> str:
        """Write the setting as run ids have it.

        >>> Setting("DoorKey-11x11", 0.020, bonus="rnd").name
        'DoorKey-11x11_a0.02_g0.995_rnd'
        """
        parts = [self.task, f"a{self.alpha:.12g}", f"g{self.gamma:.12g}"]
        parts += [] if self.max_steps is None else [f"t{self.max_steps}"]
        parts += [] if self.rollout is None else [f"n{self.rollout}"]
        parts += [] if self.bonus == "counts" else [self.bonus]
        parts += [] if self.schedule is None else ["z{:.12g}-{:.12g}".format(*self.schedule)]
        return "_".join(parts)


def parse_setting(name: str) -> Setting:
    """Read a setting; a `UserError` says what is wrong with it.

    >>> parse_setting("DoorKey-11x11_a0.02_t400_z0.2-0.5")
    Setting(task='DoorKey-11x11', alpha=0.02, gamma=0.995, max_steps=400, bonus='counts', rollout=None,
            schedule=(0.2, 0.5))
    >>> parse_setting("DoorKey-11x11_a0.02_g0.99_n256_views").bonus
    'views'
    """
    task, *parts = name.split("_")
    found: dict[str, str] = {}
    for part in parts:
        is_bonus = part in BONUS_NAMES
        if not is_bonus and not re.fullmatch(rf"[ag]{NUMBER}|[tn]-?\d+|z{NUMBER}-{NUMBER}", part):
            raise UserError(f'"{part}" is not understood in the setting {name}: {FORM}.')
        key, value = ("bonus", part) if is_bonus else (part[0], part[1:])
        if key in found:
            raise UserError(f"{NAMES[key]} is given twice in the setting {name}: leave one of them out.")
        found[key] = value
    try:
        entry_of(task)
    except ValueError as error:
        raise UserError(f"The setting {name} cannot be run: {error}.") from None
    if "a" not in found:
        raise UserError(f'The setting "{name}" has no α: {FORM}.')
    alpha, gamma = float(found["a"]), float(found.get("g", GAMMA))
    refuse_alpha_or_gamma(alpha, gamma, name)
    limit = int(found["t"]) if "t" in found else None
    if limit is not None and limit < 1:
        raise UserError(f"The time limit is {limit} steps in {name}: an episode has at least one step.")
    if limit is not None and limit > LONGEST:
        raise UserError(f"The time limit is {limit:,} steps in {name}: at most {LONGEST:,} can be counted.")
    rollout = int(found["n"]) if "n" in found else None
    if rollout is not None and (rollout < 4 or rollout % 4):
        raise UserError(f"The rollout has {rollout} steps in {name}: give a multiple of 4, the length of a sequence.")
    bonus = found.get("bonus", "counts")
    return Setting(task, alpha, gamma, limit, bonus, rollout, _schedule(found.get("z"), name))


def _schedule(text: str | None, name: str) -> tuple[float, float] | None:
    if text is None:
        return None
    start, end = (float(number) for number in re.fullmatch(rf"({NUMBER})-({NUMBER})", text).groups())  # pyright: ignore[reportOptionalMemberAccess]
    try:
        refuse_schedule(start, end)
    except ValueError as error:
        raise UserError(f"The setting {name} contradicts itself: {error}.") from None
    return start, end
