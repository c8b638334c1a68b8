"""How often the auditor names the right cause: fourteen causes planted in made-up logs, as a confusion matrix.

    python benchmarks/audit_causes.py [--logs 60] [--noise 0 0.001]

Each log has its own matching, γ, episode lengths, bonus, number of environments, with and without F and centring.
Goals: 90 % right on clean logs and 80 % in each row; with a noise of 0.1 % on every payment 75 %, and half in each row.
If two causes give the same numbers (a raw bonus is an unpaid end of `match_at_end`), only one of them is planted.
"""

import argparse
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import payback
from payback import audit
from payback.auditing.hypotheses import Cause

warnings.simplefilter("ignore", payback.InterestWarning)


@dataclass(frozen=True)
class Run:
    """A right training run, before a cause is planted: (T, B) arrays."""

    rng: np.random.Generator
    gamma: float
    matching: str
    match: payback.RewardTransform
    rewards: np.ndarray
    dones: np.ndarray
    centred: bool

    @property
    def lent(self) -> np.ndarray:
        if not self.centred:
            return self.rewards
        center = payback.center()
        return payback.shape_rollout(center, center.init(self.rewards[0]), self.rewards, self.dones)[1]

    def shaped(self, dones: np.ndarray | None = None, match: payback.RewardTransform | None = None) -> np.ndarray:
        match = match or self.match
        lent = self.lent
        return payback.shape_rollout(match, match.init(lent[0]), lent, self.dones if dones is None else dones)[1]


MATCHINGS: dict[str, Callable[[float], payback.RewardTransform]] = {
    "end": payback.match_at_end,
    "after 1": lambda g: payback.match_after(g, 1),
    "after 3": lambda g: payback.match_after(g, 3),
    "after 10": lambda g: payback.match_after(g, 10),
    "after 30": lambda g: payback.match_after(g, 30),
    "evenly 5": lambda g: payback.match_evenly(g, 5),
    "geometric": lambda g: payback.match_geometric(g, 0.8),
}


DELAYS = {"after 10": 10, "after 30": 30}


def made_up_run(rng: np.random.Generator, without: tuple[str, ...] = ()) -> Run:
    """Make a run up; episodes are longer than the delay, because in shorter ones all repay at the end alone."""
    gamma = float(rng.choice([0.9, 0.95, 0.97, 0.99, 0.995]))
    matching = str(rng.choice([name for name in MATCHINGS if name not in without]))
    B, T, mean_length = (
        int(rng.choice([1, 4])),
        1500,
        int(rng.choice([n for n in (6, 20, 80) if n > DELAYS.get(matching, 0)])),
    )
    kind = rng.choice(["normal", "counts", "sparse"])
    if kind == "normal":
        rewards = np.abs(rng.normal(1, 0.5, (T, B)))
    elif kind == "counts":
        rewards = 1 / np.sqrt(rng.integers(1, 50, (T, B)))
    else:
        rewards = np.where(rng.random((T, B)) < 0.3, rng.random((T, B)), 0.0)
    dones = rng.random((T, B)) < 1 / mean_length
    return Run(rng, gamma, matching, MATCHINGS[matching](gamma), rewards, dones, bool(rng.random() < 0.4))


def wrong_gamma(run: Run) -> np.ndarray:
    other = {0.9: 0.95, 0.95: 0.9, 0.97: 0.99, 0.99: 0.97, 0.995: 0.99}[run.gamma]
    return run.shaped(match=MATCHINGS[run.matching](other))


def clipped(run: Run) -> np.ndarray:
    shaped = run.shaped()
    bound = max(float(np.abs(run.lent).max()), float(np.median(np.abs(shaped[run.dones]))))
    return np.clip(shaped, -bound, bound)


def constant_added(run: Run) -> np.ndarray:
    return run.shaped() + 0.1 * float(run.rewards.mean()) * run.rng.choice([-1, 1])


def constant_factor(run: Run) -> np.ndarray:
    return np.where(run.dones, float(run.rng.choice([0.5, 0.9, 2.0])), 1.0) * run.shaped()


def late_reset(run: Run) -> np.ndarray:
    return run.shaped(np.concatenate((np.zeros_like(run.dones[:1]), run.dones[:-1])))


def never_reset(run: Run) -> np.ndarray:
    """Half of them never see an end; the others settle their own loans, but keep them and repay them again."""
    steady = run.shaped(np.zeros_like(run.dones))
    return steady if run.rng.random() < 0.5 else np.where(run.dones, run.shaped(), steady)


def last_reward_kept(run: Run) -> np.ndarray:
    return np.where(run.dones, run.shaped() + run.lent, run.shaped())


def unpaid_end(run: Run) -> np.ndarray:
    """The last step is paid its own bonus, or 0, or like any other step."""
    kinds = [run.lent, np.zeros_like(run.lent), unsettled(run)]
    return np.where(run.dones, kinds[run.rng.integers(3)], run.shaped())


def unsettled(run: Run) -> np.ndarray:
    """What each step is paid if an end resets the state but settles nothing."""
    T, B = run.rewards.shape
    lent, paid = run.lent, run.lent.copy()
    ages = np.array([1.0]) if run.matching == "end" else probe(run.match, run.gamma)
    for b in range(B):
        start = 0
        for stop in np.unique([*(np.flatnonzero(run.dones[:, b]) + 1), T]).tolist():
            part = lent[start:stop, b]
            back = np.convolve(part, np.concatenate(([0.0], ages)))[: len(part)]
            paid[start:stop, b] = part if run.matching == "end" else part - back
            start = stop
    return paid


def probe(match: payback.RewardTransform, gamma: float) -> np.ndarray:
    """γ⁻ᵏ m_k of a matching, from how it repays one loan of 1."""
    one = np.zeros((400, 1))
    one[0] = 1
    return -payback.shape_rollout(match, match.init(one[0]), one, np.zeros(one.shape, dtype=bool))[1][1:, 0]


def never_repaid(run: Run) -> np.ndarray:
    return run.lent.copy()


def divided_by_running_scale(run: Run) -> np.ndarray:
    shaped = run.shaped()
    squares = np.cumsum((shaped**2).mean(axis=1)) / np.arange(1, len(shaped) + 1)
    return shaped / np.sqrt(squares + 1e-3)[:, None]


def with_autoreset_rows(run: Run, shaped: np.ndarray) -> dict[str, np.ndarray]:
    """Put a paid row after each end, as a log of NEXT_STEP environments has it."""
    columns: dict[str, list[np.ndarray]] = {"shaped": [], "dones": [], "rewards": [], "environments": []}
    for b in range(shaped.shape[1]):
        after = np.flatnonzero(run.dones[:, b]) + 1
        extra = np.abs(run.rng.normal(1, 0.3, len(after)))
        columns["shaped"].append(np.insert(shaped[:, b], after, extra))
        columns["rewards"].append(np.insert(run.rewards[:, b], after, extra))
        columns["dones"].append(np.insert(run.dones[:, b], after, False))
        columns["environments"].append(np.full(len(columns["dones"][-1]), b))
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def unsettled_truncations(run: Run) -> dict[str, np.ndarray]:
    """`done` at terminations only. Half of the other logs reset the state at a truncation, but settle nothing."""
    truncated = run.dones & (run.rng.random(run.dones.shape) < 0.4)
    paid = run.shaped(run.dones & ~truncated)
    if run.rng.random() < 0.5:
        paid = np.where(truncated, unsettled(run), run.shaped())
    return {"shaped": paid, "dones": run.dones, "rewards": run.rewards, "truncated": truncated}


def one_step_episodes(run: Run) -> dict[str, np.ndarray]:
    """An episode of one step keeps its bonus."""
    ends = np.zeros_like(run.dones)
    ends[1:] = run.dones[:-1] & (run.rng.random(run.dones[1:].shape) < 0.3)
    dones = run.dones | ends
    return {"shaped": np.where(ends, run.lent, run.shaped(dones)), "dones": dones, "rewards": run.rewards}


def invalid_rows_paid(run: Run) -> dict[str, np.ndarray]:
    """The row after each end is marked as invalid, and paid."""
    valid = np.ones_like(run.dones)
    valid[1:] = ~run.dones[:-1]
    dones, match, lent = run.dones & valid, run.match, run.lent
    paid = payback.shape_rollout(match, match.init(lent[0]), lent, dones, valid)[1]
    return {"shaped": np.where(valid, paid, lent), "dones": dones, "rewards": run.rewards, "valid": valid}


@dataclass(frozen=True)
class Planted:
    cause: Cause
    plant: Callable[[Run], np.ndarray | dict[str, np.ndarray]]
    """What is paid, or all columns of the log."""
    without: tuple[str, ...] = ()
    """Matchings with which the cause looks like another, or does nothing."""


PLANTED = [
    Planted(Cause.NEVER_REPAID, never_repaid),
    Planted(Cause.WRONG_GAMMA, wrong_gamma),
    Planted(Cause.CLIPPED, clipped, ("after 1", "after 3", "evenly 5", "geometric")),
    Planted(Cause.CONSTANT_ADDED, constant_added),
    Planted(Cause.CONSTANT_FACTOR, constant_factor),
    Planted(Cause.AUTORESET_ROW, lambda run: with_autoreset_rows(run, run.shaped())),
    Planted(Cause.LATE_RESET, late_reset),
    Planted(Cause.NEVER_RESET, never_reset, ("end",)),
    Planted(Cause.LAST_REWARD_KEPT, last_reward_kept),
    Planted(Cause.UNPAID_END, unpaid_end, ("end", "after 1")),
    Planted(Cause.CHANGED_AFTER_MATCHING, divided_by_running_scale),
    Planted(Cause.UNSETTLED_TRUNCATION, unsettled_truncations),
    Planted(Cause.ONE_STEP_EPISODE, one_step_episodes),
    Planted(Cause.INVALID_ROW_PAID, invalid_rows_paid),
]


def planted_log(planted: Planted, seed: int, noise: float) -> tuple[dict[str, np.ndarray], float]:
    """A log with one planted cause, as arguments of `audit`, and its γ."""
    rng = np.random.default_rng([seed, PLANTED.index(planted)])
    run = made_up_run(rng, planted.without)
    shaped = planted.plant(run)
    columns = shaped if isinstance(shaped, dict) else {"shaped": shaped, "dones": run.dones, "rewards": run.rewards}
    columns["shaped"] = columns["shaped"] * (1 + noise * rng.normal(size=columns["shaped"].shape))
    if rng.random() < 0.35:
        del columns["rewards"]
    return columns, run.gamma


def confusion(
    logs: int, noise: float, first_seed: int = 0, planted: Sequence[Planted] = PLANTED
) -> dict[Cause, Counter[Cause]]:
    """Planted cause → how often each cause was named for most of the broken episodes."""
    found: dict[Cause, Counter[Cause]] = {}
    for one in planted:
        named = found.setdefault(one.cause, Counter())
        for seed in range(first_seed, first_seed + logs):
            columns, gamma = planted_log(one, seed, noise)
            result = audit(gamma=gamma, **columns)  # pyright: ignore[reportArgumentType]
            named[result.causes.most_common(1)[0][0] if result.causes else Cause.UNKNOWN] += 1
    return found


def share_right(found: dict[Cause, Counter[Cause]]) -> float:
    return sum(named[cause] for cause, named in found.items()) / sum(named.total() for named in found.values())


def print_matrix(found: dict[Cause, Counter[Cause]]) -> None:
    for cause, named in found.items():
        wrong = ", ".join(f"{other.value} {count}" for other, count in named.most_common() if other is not cause)
        print(f"  {cause.value:24}{named[cause] / named.total():6.0%}   {wrong}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=60, help="logs per cause")
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.001])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    for noise in asked.noise:
        found = confusion(asked.logs, noise, asked.seed)
        print(f"noise {noise:.1%}, {asked.logs} logs per cause: {share_right(found):.1%} right")
        print_matrix(found)


if __name__ == "__main__":
    main()
