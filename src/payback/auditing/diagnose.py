"""Name the cause of an environment's leaks: the hypothesis that explains all of them best.

A hypothesis is scored by how much of each leak is left without its cause, in powers of ten, on average over the
episodes: the right one leaves rounding errors or the log's noise, a wrong one about as much as there was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from payback.auditing.hypotheses import NONE, Cause, Evidence, Hypothesis, LeakyEpisode, causes_of
from payback.auditing.infer import MatchingFit
from payback.auditing.rows import Log, batches, run_starts
from payback.auditing.scan import LEAKS, EpisodeTable
from payback.core.arrays import plain

LEAST, CERTAIN, MOST = 0.9, 2.0, 4.0
"""Powers of ten that a hypothesis must explain to be named, also where leaks may be noise, and that count at most."""
OWN = 0.5  # powers of ten by which an environment's own cause must explain more than that of all together
NOISE = 0.02  # leaks below this share of the payments may be noise, beside which a few large ones have a cause
POOLED = 200  # episodes of all environments that are looked at together
# Causes that mean, if only truncated episodes and those after them leak, that `done` lacks the truncations, and causes
# for which the two kinds of leak together, before and after a truncation, may be mistaken.
AT_TRUNCATIONS = {Cause.UNPAID_END, Cause.NEVER_RESET}
MISTAKEN = {Cause.NEVER_REPAID, Cause.LAST_REWARD_KEPT, Cause.CONSTANT_FACTOR, Cause.CHANGED_AFTER_MATCHING}
LIKE_THEM = AT_TRUNCATIONS | MISTAKEN | {Cause.UNKNOWN}
LOOKED_AT, ONE_STEP_LOOKED_AT, ROWS_LOOKED_AT, ENVIRONMENTS_LOOKED_AT = 150, 5, 100_000, 8
"""Leaking episodes, those of one step, and rows of each environment, and environments, from which causes are named."""
LEAD = 64  # rows before an episode that are looked at: loans of the previous episode
Excerpt = tuple[Any, int, int]  # some valid rows of an environment: its id, the first row and how many


class ExcerptRows(NamedTuple):
    """The columns of an excerpt, in float64."""

    shaped: np.ndarray
    rewards: np.ndarray | None
    lent: np.ndarray | None


def _explained(
    episodes: list[LeakyEpisode], gamma: float, at_truncations: set[Cause], known: MatchingFit | None
) -> tuple[Hypothesis, float, MatchingFit | None]:
    """Return the cause, how many powers of ten of the leaks it explains, and the matching that fits."""
    longer, one_step = [e for e in episodes if len(e.shaped) > 1], Hypothesis(Cause.ONE_STEP_EPISODE, step=0)
    if not longer:
        return one_step, 0.0, known
    evidence = Evidence(longer, gamma, known)
    best, named = max(((score(h, evidence), h) for h in causes_of(evidence)), key=lambda pair: pair[0])
    if len(longer) < len(episodes) and best < CERTAIN and float(np.quantile(evidence.relative, 0.9)) < NOISE:
        return one_step, 0.0, evidence.matching
    if (named.cause if best >= LEAST else Cause.UNKNOWN) in at_truncations:
        return Hypothesis(Cause.UNSETTLED_TRUNCATION), best, evidence.matching
    if best < LEAST:
        last, missing = evidence.last[0], evidence.missing[0]
        example = f"for example {last - missing:.4g} was owed at the last step and {last:.4g} was paid"
        return Hypothesis(Cause.UNKNOWN, numbers=example), 0.0, evidence.matching
    return named, best, evidence.matching


def score(hypothesis: Hypothesis, evidence: Evidence) -> float:
    """Return how many powers of ten of the leak are explained, on average; less for what was fitted to few episodes."""
    # Nothing is explained by what leaves more than there was in most episodes, however well it fits the others.
    if np.mean(hypothesis.left > 1) > 0.5:
        return 0.0
    left = np.where(np.isfinite(hypothesis.left), hypothesis.left, 1.0)
    gained = np.clip(-np.log10(np.maximum(left, 10.0**-MOST)), 0, MOST)
    return float(np.average(gained, weights=evidence.weights)) - hypothesis.handicap


def diagnose_log(
    log: Log, table: EpisodeTable, gamma: float, known: MatchingFit | None
) -> tuple[dict[Any, int], Callable[[Any], Hypothesis]]:
    """Read a log's leaking episodes again, and name the cause of each environment.

    Returns how many episodes of each environment leak, and the cause: that of all environments together, unless its
    own explains far more.
    """
    bad = np.flatnonzero(table.verdict == LEAKS)
    keys, which, counts = np.unique(table.environment[bad], return_inverse=True, return_counts=True)
    looked = np.argsort(-counts, kind="stable")[:ENVIRONMENTS_LOOKED_AT].tolist()
    chosen = [_sample(table, bad[which == e]) for e in looked]
    rows = iter(rows_of(log, [_span(table, k) for ks in chosen for k in ks]))
    episodes = [[_episode(table, k, next(rows)) for k in ks] for ks in chosen]
    at_truncations, together = _at_truncations(table), [*chain(*episodes)]
    common, best, known = _explained(together[:: 1 + len(together) // POOLED], gamma, at_truncations, known)
    named: dict[Any, Hypothesis] = {}
    for e, several in zip(looked, episodes, strict=True):
        own, more = (common, best) if len(looked) == 1 else _explained(several, gamma, at_truncations, known)[:2]
        named[plain(keys[e])] = own if more > best + OWN else common
    overall = next(iter(named.values()))
    leaking = {plain(key): count for key, count in zip(keys, counts.tolist(), strict=True)}
    return leaking, lambda environment: named.get(environment, overall)


def _at_truncations(table: EpisodeTable) -> set[Cause]:
    """Return the causes that mean that truncations did not reach the matching: only they, and what follows, leak."""
    truncated, leaks = table.truncated, table.verdict == LEAKS
    if not (truncated & leaks).any():
        return set()
    # The next episode repays the loans that an unsettled truncation leaves, so it leaks as well.
    follows = np.append(False, truncated[:-1] & (table.environment[1:] == table.environment[:-1]))
    others = table.relative[~(truncated | follows)]
    if not len(others):
        return AT_TRUNCATIONS if truncated.all() else LIKE_THEM
    noise = float(np.quantile(others, 0.9))
    visible = noise < NOISE and float(np.median(table.relative[truncated & leaks])) > 10 * noise
    return LIKE_THEM if visible else set()


def rows_of(log: Log, excerpts: list[Excerpt]) -> list[ExcerptRows]:
    """Read the log again for the rows of some excerpts; rows beyond its end are left out."""
    parts: list[list[ExcerptRows]] = [[] for _ in excerpts]
    seen: Counter[Any] = Counter()
    for batch in batches(log.name, log.read()):
        bounds = np.append(run_starts(batch.ids), len(batch.ids)).tolist()
        where = {plain(batch.ids[start]): (start, stop) for start, stop in pairwise(bounds)}
        for part, (environment, first, length) in zip(parts, excerpts, strict=True):
            start, stop = where.get(environment, (0, 0))
            at = first + start - seen[environment]
            rows = slice(max(at, start), min(at + length, stop))
            if rows.start < rows.stop:
                columns = (batch.shaped, batch.rewards, batch.lent)
                part.append(ExcerptRows._make(None if x is None else x[rows].astype(np.float64) for x in columns))
        seen.update({environment: stop - start for environment, (start, stop) in where.items()})
    whole = ((None if x[0] is None else np.concatenate(x) for x in zip(*part, strict=True)) for part in parts)
    return [*map(ExcerptRows._make, whole)]


def _sample(table: EpisodeTable, bad: np.ndarray) -> list[int]:
    """Return leaking episodes of one environment, spread over the log; few of those of one step."""
    longer, one_step = bad[table.length[bad] > 1], bad[table.length[bad] == 1][:ONE_STEP_LOOKED_AT]
    picked = longer[np.unique(np.linspace(0, len(longer) - 1, min(LOOKED_AT, len(longer))).astype(int))]
    picked = np.concatenate((one_step, picked))
    fits = np.cumsum(table.length[picked]) <= ROWS_LOOKED_AT
    fits[0] = True
    return picked[fits].tolist()


def _span(table: EpisodeTable, k: int) -> Excerpt:
    """Return where the episode lies, with some rows before it and the row after it."""
    first = max(int(table.first[k]) - LEAD, 0)
    return plain(table.environment[k]), first, int(table.first[k] + table.length[k]) - first + 1


def _episode(table: EpisodeTable, k: int, read: ExcerptRows) -> LeakyEpisode:
    lead = min(int(table.first[k]), LEAD)
    rows = slice(lead, lead + int(table.length[k]))
    paid, rewards, lent = read
    bonus = next((x for x in (lent, rewards) if x is not None), NONE)
    after, leak = float(paid[rows.stop]) if len(paid) > rows.stop else np.nan, float(table.leak[k])
    return LeakyEpisode(paid[rows], bonus[rows], lent is not None, leak, paid[:lead], bonus[:lead], after)
