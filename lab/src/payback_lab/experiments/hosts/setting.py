"""The names of the settings of `hosts`, like DoorKey-8x8_a0.02_episodic-count, and the methods that can be run there.

DoorKey-8x8       the task: MountainCar, or a MiniGrid task as `environments/minigrid/tasks.py` names it
a0.02             α of the bonus
episodic-count    the bonus, one of `BONUSES`
unnormalised      without Stable-Baselines3's normalisation of advantages; with it if left out
"""

import re
from typing import NamedTuple

from payback_lab.environments.minigrid.tasks import entry_of
from payback_lab.experiments.doorkey.config import refuse_alpha_or_gamma
from payback_lab.methods import AdvantageSide, parse_advantage_side, parse_scheme
from payback_lab.user_error import UserError

MOUNTAIN_CAR = "MountainCar"
COUNTS = "episodic-count"
EPISODIC = (COUNTS, "rnd-views", "ride", "noveld", "e3b")
"""Bonuses that pay less for what this episode has seen."""
LIFETIME = ("count", "simhash", "recency", "rnd", "icm", "disagreement")
BONUSES = (*EPISODIC, *LIFETIME)
"""The library's bonuses, as `training.bonus_of` makes them; the learned ones have the names of the study `learned`."""
GAMMA = 0.99
RAW_ADVANTAGE, RAW_ADVANTAGE_BACK = "raw-adv-0.95", "raw-adv-0.95-back"
"""The raw bonus as an advantage with λ_I = 0.95: two critics without the second one."""
FORM = f"write task, α and bonus like DoorKey-8x8_a0.02_{COUNTS} (bonuses: {', '.join(BONUSES)}), then _unnormalised"


class Setting(NamedTuple):
    """Hold what a setting's name says."""

    task: str
    alpha: float
    bonus: str = COUNTS
    normalised: bool = True

    @property
    def name(self) -> str:
        """Write the setting as run ids have it.

        >>> Setting("MountainCar", 0.40).name
        'MountainCar_a0.4_episodic-count'
        """
        return f"{self.task}_a{self.alpha:.12g}_{self.bonus}" + ("" if self.normalised else "_unnormalised")


def parse_setting(name: str) -> Setting:
    """Read a setting; a `UserError` says what is wrong with it.

    >>> parse_setting("DoorKey-8x8_a0.02_rnd_unnormalised")
    Setting(task='DoorKey-8x8', alpha=0.02, bonus='rnd', normalised=False)
    """
    found = re.fullmatch(r"([^_]+)_a(-?\d+(?:\.\d+)?)_([^_]+)(_unnormalised)?", name)
    if found is None:
        raise UserError(f'The setting "{name}" is not understood: {FORM}.')
    task, alpha, bonus, plain = found.groups()
    if bonus not in BONUSES:
        raise UserError(f'There is no bonus "{bonus}" in the setting {name}: choose one of {", ".join(BONUSES)}.')
    if task != MOUNTAIN_CAR:
        try:
            entry_of(task)
        except ValueError as error:
            raise UserError(f"The setting {name} cannot be run: {error}; or {MOUNTAIN_CAR}.") from None
    refuse_alpha_or_gamma(float(alpha), GAMMA, name)
    return Setting(task, float(alpha), bonus, plain is None)


def form_of(method: str) -> AdvantageSide | None:
    """Return what an advantage-side method says, None for one that shapes the reward; a ValueError if there is none.

    >>> form_of("grm-30") is None, form_of("grm-adv-30-0.95-lone-back").taken_back
    (True, True)
    >>> form_of("grm-adv-30-0.95")
    Traceback (most recent call last):
    ValueError: grm-adv-30-0.95 has a second critic, which Stable-Baselines3 has not: write grm-adv-30-0.95-lone
    """
    if method in (RAW_ADVANTAGE, RAW_ADVANTAGE_BACK):
        return AdvantageSide("two-critics", None, 0.95, False, False, False, method == RAW_ADVANTAGE_BACK)
    if method.startswith("grm-adv"):
        form = parse_advantage_side(method)
        if not form.fades:
            raise ValueError(f"the library's grm_adv always fades near an episode's end: leave -flat out of {method}")
        if form.critic:
            lone = f"{method.removesuffix('-back')}-lone{'-back' * form.taken_back}"
            raise ValueError(f"{method} has a second critic, which Stable-Baselines3 has not: write {lone}")
        return form
    try:
        known = parse_scheme(method).kind != "when"
    except ValueError:
        known = False
    if not known:
        raise ValueError(
            f'There is no method "{method}": choose among none, im, pbim, grm-D for any delay D, even-W, geometric-R, '
            f"grm-adv-D-L-lone (with λ_I = L) and {RAW_ADVANTAGE}, the last two also with -back."
        )
    return None
