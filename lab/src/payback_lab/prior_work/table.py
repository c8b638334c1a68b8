"""The paper's table of prior methods (fig. prior_table), decided on small random decision problems.

A cell is ✓ if shaping leaves the optimal actions after every history unchanged in all problems tried; ✗ with the first
problem where it does not; ○ with the condition under which it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from payback.mdp import MDP, History, Solution, solve
from payback_lab.prior_work.methods import METHODS, Method
from payback_lab.prior_work.problems import (
    Problem,
    Table,
    absorbing,
    advised_chain,
    free_end,
    loop,
    one_end,
    optimal_sets,
    optimal_values,
)

SETTINGS = ("absorbing", "free end", "action", "time", "history", "partial")
"""Absorbing state (endless); episodes that end anywhere; Φ or F of actions, of time, of history; partly observed."""
GAMMA = 0.9


@dataclass(frozen=True)
class Cell:
    """Hold the result of one method in one setting."""

    verdict: str
    """"✓", "✗", "○", or "–" where the method cannot be applied."""
    tried: int = 0
    problem: str = ""
    """The first problem on which the method, as it stands, changes the optimal actions."""
    where: str = ""
    """The history there, and the two sets of optimal actions."""
    condition: str = ""

    def __str__(self) -> str:
        detail = f" {self.problem}" if self.verdict == "✗" else f" {self.condition}" if self.verdict == "○" else ""
        return self.verdict + detail


def prior_table(problems: int = 200, progress: Callable[[str, int], None] | None = None) -> dict[str, dict[str, Cell]]:
    """Decide every cell over so many problems each: method → setting → cell.

    >>> table = prior_table(problems=3)
    >>> table["PBIM 2024"]["free end"].verdict, table["raw bonus"]["free end"].problem
    ('✓', 'loop')
    """
    cells: dict[str, dict[str, Cell]] = {method.name: {} for method in METHODS}
    for setting in SETTINGS:
        found = _decide(setting, problems, progress)
        for method in METHODS:
            cells[method.name][setting] = found[method.name]
    return cells


def _decide(setting: str, problems: int, progress: Callable[[str, int], None] | None) -> dict[str, Cell]:
    """Try every method on the same problems of one setting; a variant is dropped once it has failed."""
    able = [m for m in METHODS if not m.only or setting in m.only]
    failures: dict[tuple[str, bool], tuple[str, str]] = {}
    instances = _absorbing_problems(problems) if setting == "absorbing" else _problems(setting, problems)
    count = 0
    for count, (name, attempt) in enumerate(instances, start=1):
        for method in able:
            for conditioned in (False, True):
                key = (method.name, conditioned)
                if key in failures or (conditioned and method.conditioned is None):
                    continue
                where = attempt(method, conditioned)
                if where:
                    failures[key] = (name, where)
        if progress:
            progress(setting, count)
    return {m.name: _cell(m, m in able, failures, count) for m in METHODS}


def _cell(method: Method, able: bool, failures: dict[tuple[str, bool], tuple[str, str]], tried: int) -> Cell:
    if not able:
        return Cell("–")
    failed = failures.get((method.name, False))
    if failed is None:
        return Cell("✓", tried)
    if method.conditioned is not None and (method.name, True) not in failures:
        return Cell("○", tried, *failed, condition=method.condition)
    return Cell("✗", tried, *failed)


Attempt = Callable[[Method, bool], str]
"""(method, with its condition?) → "" if the optimal actions are the same, else where they are not."""


def _problems(setting: str, count: int) -> Iterable[tuple[str, Attempt]]:
    named = ["loop", "advised chain"] if setting == "free end" else []
    for k in range(-len(named), count):
        name = named[k + len(named)] if k < 0 else f"seed {k}"
        problem = _problem(setting, name, k)
        plain = solve(problem.mdp, GAMMA)
        yield name, lambda method, conditioned, p=problem, v=plain: _compare(p, v, method, conditioned)


def _compare(problem: Problem, plain: Solution, method: Method, conditioned: bool) -> str:
    build = method.conditioned if conditioned else method.build
    assert build is not None
    narrows = conditioned and method.narrows
    shaped = solve(problem.mdp, GAMMA, build(problem, GAMMA, plain))
    for history in plain.q:
        before, after = plain.optimal(history), shaped.optimal(history)
        if before != after and not (narrows and after < before):
            return f"after {history}: {sorted(map(str, before))} becomes {sorted(map(str, after))}"
    return ""


def _problem(setting: str, name: str, seed: int) -> Problem:
    """Build a problem of one setting, with a bonus and a potential of the kind that the setting is about."""
    f, phi = Table(f"F {setting} {seed}"), Table(f"Φ {setting} {seed}")
    known: dict[str, MDP] = {"loop": loop(), "advised chain": advised_chain()}
    mdp = known.get(name) or (free_end(seed) if setting == "free end" else one_end(seed, setting == "partial"))

    def bonus(history: History, is_last: bool) -> float:
        s, a, after = history[-3:]
        if name == "loop":
            return 1.0 if after in mdp.transitions else 0.0
        if name == "advised chain":
            return 1.0 if a == "back" else 0.0
        key: dict[str, tuple[Any, ...]] = {"action": (s, a), "time": (after, len(history)), "history": history}
        return f(*key.get(setting, (s, a, after)))

    def potential(seen: History, action: Any) -> float:
        if seen[-1] == "end":
            return 0.0
        key: dict[str, tuple[Any, ...]] = {
            "action": (seen[-1], action), "time": (seen[-1], len(seen) // 2), "history": seen,
            # A belief is a function of everything the agent has seen.
            "partial": seen,
        }  # fmt: skip
        return phi(*key.get(setting, (seen[-1],)))

    def frozen(seen: History, t: int) -> float:
        return phi(seen[-1], t) if setting == "time" and seen[-1] != "end" else potential(seen, None)

    return Problem(mdp, bonus, potential, frozen, of_action=setting == "action")


def _absorbing_problems(count: int) -> Iterable[tuple[str, Attempt]]:
    """Yield endless problems with one absorbing state: by value iteration, or over histories for methods that repay."""
    for k in range(count):
        P, R = absorbing(k)
        rng = np.random.default_rng([k, 8])
        F, phi = rng.integers(-4, 5, P.shape) / 2, rng.integers(-4, 5, len(P)) / 2.0
        F[-1] = 0
        problem = _problem("absorbing", f"seed {k}", k)
        plain = solve(problem.mdp, GAMMA)

        def attempt(method: Method, conditioned: bool, k=k, P=P, R=R, F=F, phi=phi, p=problem, v=plain) -> str:
            if method.repays:
                return _compare(p, v, method, conditioned)
            Q = optimal_values(P, R, GAMMA)
            if method.advice_weight is not None:
                shaped = Q + method.advice_weight * optimal_values(P, F, GAMMA)
            else:
                weight = method.conditioned_weight if conditioned else method.bonus_weight
                added = weight * F if method.takes == "bonus" else GAMMA * phi[None, None, :] - phi[:, None, None]
                shaped = optimal_values(P, R + added, GAMMA)
            before, after = optimal_sets(Q)[:-1], optimal_sets(shaped)[:-1]
            changed = after & ~before if conditioned and method.narrows else before != after
            states = np.flatnonzero(changed.any(axis=1))
            return f"in state {states[0]}" if states.size else ""

        yield f"seed {k}", attempt
