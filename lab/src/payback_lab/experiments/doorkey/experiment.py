"""MiniGrid DoorKey (section `minigrid`): which scheme learns faster, and to which policy?

An 8×8 grid seen in part, PPO with an LSTM, 10 million steps, eight schemes at three settings of (α, γ).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from payback_lab.experiments.doorkey.claims import CLAIMS, QUESTION
from payback_lab.experiments.doorkey.config import (
    ABLATIONS,
    ABOUT,
    DoorKeyConfig,
    name_of,
    parse_setting,
    without_alpha,
)
from payback_lab.experiments.doorkey.measures import PAPER, SETTINGS
from payback_lab.experiments.doorkey.sized import DoorKeyRuns
from payback_lab.methods import SCHEMES
from payback_lab.runs import Asked, GroupName, Run

COMPARED = ("grm-1", "grm-10", "pbim")
"""The paper's schemes that are shown beside the other matchings: like these they are of F − F̄."""
OPTIMUM = 16.766
"""Mean of the fewest steps over all starts of the 8×8 grid, by breadth-first search (`doorkey_optimum`)."""
NOTES = (
    "Paper-literal: the base code's PPO and network, reward 1 at the goal, 640 steps, F̄ cumulative over all "
    "environments and all of training, every bonus repaid with interest.",
    "A truncated episode counts as ended: the debt is settled there and nothing is bootstrapped.",
    "No IM does not depend on α: it is run once for each γ and shown at both settings of γ = 0.995.",
)


@dataclass(frozen=True, kw_only=True)
class DoorKeyExperiment(DoorKeyRuns):
    """Describe the experiment; see `experiment.Experiment`."""

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return all eight, or those that an ablation is about."""
        return SCHEMES if ablation is None else ABOUT[ablation]

    def plan(self, asked: Asked) -> list[Run]:
        """List every scheme × setting of seed 0, then of seed 1, and so on: whatever is stopped is balanced.

        No IM is planned once per γ. What an ablation leaves as it is, is left out.
        """
        asked.refuse_part_of("update", self.config().samples)
        cells = [
            self._cell(scheme, setting, asked)
            for setting in asked.settings or self.settings
            for scheme in asked.schemes or self.schemes(asked.ablation)
        ]
        return [
            Run(self.name, asked.ablation, setting, scheme, seed, config)
            for seed, (setting, scheme, config) in asked.seed_by_seed(dict.fromkeys(filter(None, cells), self.seeds))
        ]

    def _cell(self, scheme: str, setting: str, asked: Asked) -> tuple[str, str, DoorKeyConfig] | None:
        """Return setting, scheme and config of one cell; None if the ablation makes no difference to it."""
        alpha, gamma = parse_setting(setting)
        name = name_of({"a": alpha, "g": gamma})
        if scheme == "none":
            # The same config at every α, so that it is the same run.
            alpha, name = self.config.alpha, name_of({"g": gamma})
        config = self.config(gamma=gamma, alpha=alpha, shaping_gamma=gamma)
        if asked.steps is not None:
            config = replace(config, total_steps=asked.steps)
        if asked.ablation is None:
            return name, scheme, config
        changes = self.ablations[asked.ablation]
        if scheme in ("none", "im") and "shaping_gamma" in changes:
            return None
        changed = replace(config, **changes)
        return None if changed == config else (name, scheme, changed)

    def sections(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Report setting by setting, with No IM in each of its γ; other matchings separately, beside the paper's."""
        runs = {name: Run.parse(name) for name in ids}
        cells = {(run.group, run.setting or "", run.scheme) for run in runs.values()}
        found: dict[str, list[str]] = {}
        for name, run in runs.items():
            for section in _sections_of(run.group, run.setting or "", run.scheme, cells):
                found.setdefault(section, []).append(name)
        return dict(
            sorted(found.items(), key=lambda section: (GroupName.parse(section[0]).ablation is not None, section[0]))
        )


def _sections_of(group: str, setting: str, scheme: str, cells: Collection[tuple[str, str, str]]) -> list[str]:
    """Return the sections in which a cell is shown."""
    others = f"{group}+{QUESTION}/{setting}"
    if scheme not in SCHEMES:
        return [others]
    if scheme == "none":
        shown = sorted(
            {at for of, at, other in cells if of == group and other != "none" and without_alpha(at) == setting}
        )
        return [f"{group}/{at}" for at in shown or [setting]]
    beside = scheme in COMPARED and any(
        (of, at) == (group, setting) and other not in SCHEMES for of, at, other in cells
    )
    return [f"{group}/{setting}", *([others] if beside else [])]


EXPERIMENT = DoorKeyExperiment(
    name="doorkey",
    title="MiniGrid DoorKey",
    ablations=ABLATIONS,
    settings=SETTINGS,
    notes=NOTES,
    paper=PAPER,
    points=500,
    reference={"window_mean": ("optimum", OPTIMUM)},
    claimed=CLAIMS,
)
