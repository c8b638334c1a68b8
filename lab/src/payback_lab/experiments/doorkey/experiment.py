"""MiniGrid DoorKey (section `minigrid`): which scheme learns faster, and to which policy?

An 8×8 grid seen in part, PPO with an LSTM, 10 million steps, eight schemes at three settings of (α, γ).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from payback_lab.experiments.doorkey.claims import claims
from payback_lab.experiments.doorkey.config import DoorKeyConfig, parse_setting, refuse_part_of_update
from payback_lab.experiments.doorkey.figures import single_figures
from payback_lab.experiments.doorkey.printed import SETTINGS, TABLE
from payback_lab.learners.ppo.config import LEARNER_VERSION
from payback_lab.methods import SCHEMES
from payback_lab.running.plan import Claim, Result, Run, Scalar

ABLATIONS: Mapping[str, Mapping[str, float]] = {
    "plain-settlement": {"shaping_gamma": 1.0},
    "learner-discount-0.99": {"gamma": 0.99},
    "entropy-0.001": {"entropy_weight": 0.001},
}
"""What could explain where these results and the paper's part. The first two break the law: loans are repaid without
interest; learner and shaping discount differently."""
ABOUT = {
    "plain-settlement": ("pbim", "pbim-raw"),
    "learner-discount-0.99": ("im", "grm-10"),
    "entropy-0.001": ("none", "im", "grm-10"),
}
"""The schemes on which each ablation is of interest."""
COMPARED = ("grm-1", "grm-10", "pbim")
"""The paper's schemes that are shown beside the other matchings: like these they are of F − F̄."""
OPTIMUM = 16.766
"""Mean of the fewest steps over all starts of the 8×8 grid, by breadth-first search (`doorkey_optimum`)."""
NOTES = (
    "Paper-literal: the base code's PPO and network, reward 1 at the goal, 640 steps, F̄ cumulative over all "
    "environments and all of training, every loan repaid with interest.",
    "A truncated episode counts as ended: the loans are settled there and nothing is bootstrapped.",
    "No IM does not depend on α: it is run once for each γ and shown at both settings of γ = 0.995.",
)


def printed() -> dict[str, dict[str, str]]:
    """Return the paper's table for the report: group and figure → scheme → as printed."""
    ways = {
        "mean_length": lambda row: f"{row.length:g}",
        "length_deviation": lambda row: f"{row.deviation:g}",
        "convergence_step": lambda row: "N/A" if row.time is None else f"{row.time:g} M",
    }
    return {
        f"doorkey/{setting}/{key}": {scheme: way(row) for scheme, row in rows.items()}
        for setting, rows in TABLE.items()
        for key, way in ways.items()
    }


@dataclass(frozen=True)
class DoorKeyExperiment:
    """Describe the experiment; see `plan.Experiment`."""

    name: str = "doorkey"
    title: str = "MiniGrid DoorKey"
    learner_version: int = LEARNER_VERSION
    config: type[DoorKeyConfig] = DoorKeyConfig
    ablations: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: ABLATIONS)
    settings: tuple[str, ...] = SETTINGS
    seeds: int = 3
    notes: tuple[str, ...] = NOTES
    paper: Mapping[str, Mapping[str, str]] = field(default_factory=printed)
    points: int = 500
    adds_up: bool = True
    reference: Mapping[str, tuple[str, float]] = field(default_factory=lambda: {"window_mean": ("optimum", OPTIMUM)})

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return all eight, or those that an ablation is about."""
        return SCHEMES if ablation is None else ABOUT[ablation]

    def plan(
        self,
        schemes: Sequence[str],
        seeds: int | None,
        settings: Sequence[str],
        steps: int | None,
        ablation: str | None,
        first_seed: int = 0,
    ) -> list[Run]:
        """List every scheme × setting of seed 0, then of seed 1, and so on: whatever is stopped is balanced.

        No IM is planned once per γ. What an ablation leaves as it is, is left out.
        """
        if steps is not None:
            refuse_part_of_update(steps)
        cells = dict.fromkeys(
            cell
            for setting in settings or self.settings
            for scheme in schemes or self.schemes(ablation)
            if (cell := self._cell(scheme, setting, steps, ablation)) is not None
        )
        return [
            Run(self.name, ablation, setting, scheme, seed, config)
            for seed in range(first_seed, first_seed + (seeds or self.seeds))
            for setting, scheme, config in cells
        ]

    def _cell(
        self, scheme: str, setting: str, steps: int | None, ablation: str | None
    ) -> tuple[str, str, DoorKeyConfig] | None:
        """Return setting, scheme and config of one cell; None if the ablation makes no difference to it."""
        alpha, gamma = parse_setting(setting)
        name = f"a{alpha:.12g}-g{gamma:.12g}"
        if scheme == "none":
            # The same config at every α, so that it is the same run.
            alpha, name = self.config.alpha, f"g{gamma:.12g}"
        config = self.config(gamma=gamma, alpha=alpha, shaping_gamma=gamma)
        if steps is not None:
            config = replace(config, total_steps=steps)
        if ablation is None:
            return name, scheme, config
        changes = self.ablations[ablation]
        if scheme in ("none", "im") and "shaping_gamma" in changes:
            return None
        changed = replace(config, **changes)
        return None if changed == config else (name, scheme, changed)

    def batches(self, runs: list[Run]) -> list[tuple[Run, ...]]:
        """Give every run a process of its own: seeds side by side in one were slower."""
        return [(run,) for run in runs]

    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        """Train one run, from its checkpoint if there is one."""
        from payback_lab.experiments.doorkey.training import train

        (run,) = batch
        return {run.id: train(run, self.learner_version, progress, out)}

    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds on one core: compiling, training, and watching the trained agent."""
        return sum(20 + run.config.total_steps / 40_000 for run in batch)

    def claims(self, results: Mapping[str, Result]) -> list[Claim]:
        """Decide the paper's sentences from the single figures there are."""
        return claims(results)

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the figures, those of the curve computed from it again."""
        return {**result.summary, **single_figures(result.columns, config["size"])}

    def sections(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Report setting by setting, with No IM in each of its γ; other matchings apart, beside the paper's."""
        cells = {tuple(name.split("/")[:3]) for name in ids}
        found: dict[str, list[str]] = {}
        for name in ids:
            group, setting, scheme, _ = name.split("/")
            for section in _sections_of(group, setting, scheme, cells):
                found.setdefault(section, []).append(name)
        return dict(sorted(found.items(), key=lambda section: ("+" in section[0], section[0])))


def _sections_of(group: str, setting: str, scheme: str, cells: Collection[tuple[str, ...]]) -> list[str]:
    """Return the sections in which a cell is shown."""
    others = f"{group}+other-matchings/{setting}"
    if scheme not in SCHEMES:
        return [others]
    if scheme == "none":
        alike = sorted(
            {at for of, at, other in cells if of == group and other != "none" and at.endswith(f"-{setting}")}
        )
        return [f"{group}/{at}" for at in alike or [setting]]
    beside = scheme in COMPARED and any(
        (of, at) == (group, setting) and other not in SCHEMES for of, at, other in cells
    )
    return [f"{group}/{setting}", *([others] if beside else [])]


EXPERIMENT = DoorKeyExperiment()
