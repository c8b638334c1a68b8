from itertools import pairwise

import numpy as np
import pytest

import payback
from payback import audit
from payback.auditing.audit import AuditOptions, audit_log
from payback.auditing.hypotheses import Cause
from payback.auditing.rows import Log
from payback.auditing.scan import CHUNK, segment_sums

GAMMA = 0.97
B, T = 5, 400


def log(seed=0, transform=None, gamma=GAMMA, B=B, T=T):
    """A training run's rewards: F, what was paid, ends; (T, B)."""
    rng = np.random.default_rng(seed)
    F = np.abs(rng.normal(1, 0.5, (T, B)))
    dones = rng.random((T, B)) < 0.04
    transform = transform or payback.grm(gamma, 10)
    _, shaped = payback.shape_rollout(transform, transform.init(F[0]), F, dones)
    return F, shaped, dones


def causes(found):
    return {leak.cause for leak in found.leaks}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transform", [payback.grm(GAMMA, 10), payback.pbim(GAMMA), payback.match_evenly(GAMMA, 5)])
def test_a_lawful_log_is_ok(dtype, transform) -> None:
    F, _, dones = log()
    F = F.astype(dtype)
    _, shaped = payback.shape_rollout(transform, transform.init(F[0]), F, dones)
    found = audit(shaped, dones, GAMMA)
    assert found.ok
    assert not found.leaks
    assert len(found.episodes.leak) == dones.sum()
    assert found.unfinished == int((~dones[-1]).sum())


def test_any_order_of_rows_gives_the_same() -> None:
    _, shaped, dones = log()
    shaped[77, 2] += 0.5
    block = audit(shaped, dones, GAMMA)
    ids = np.broadcast_to(np.arange(B), (T, B)).reshape(-1)
    mixed = audit(shaped.reshape(-1), dones.reshape(-1), GAMMA, environments=ids)
    named = audit(shaped.reshape(-1), dones.reshape(-1), GAMMA, environments=np.array(list("abcde"))[ids])
    assert block.leaks[0].environment == mixed.leaks[0].environment == 2
    assert named.leaks[0].environment == "c"
    assert block.broken == mixed.broken == named.broken == 1
    assert block.leaks[0].amount == pytest.approx(mixed.leaks[0].amount)


def test_episode_and_step_are_found() -> None:
    _, shaped, dones = log()
    ends = np.flatnonzero(dones[:, 3])
    shaped[ends[4], 3] += 1
    (leak,) = audit(shaped, dones, GAMMA).leaks
    assert (leak.environment, leak.episode, leak.length) == (3, 4, ends[4] - ends[3])
    assert leak.amount == pytest.approx(GAMMA ** (leak.length - 1))
    assert leak.first == ends[3] + 1


def in_batches(table, seed=1, most=70):
    """The same rows, cut into batches of any size."""
    rng, n = np.random.default_rng(seed), len(table["shaped"])
    cuts = np.unique(np.concatenate(([0, n], rng.integers(0, n, 2 * n // most))))
    return Log("log", lambda: ((a, {k: x[a:b] for k, x in table.items()}) for a, b in pairwise(cuts.tolist())))


def test_batches_of_any_size_give_the_same() -> None:
    F, shaped, dones = log(T=1000)
    shaped[500:, 2] *= 1.5
    at_once = audit(shaped, dones, GAMMA, rewards=F)
    table = {"shaped": shaped, "done": dones, "reward": F, "environment": np.broadcast_to(np.arange(B), dones.shape)}
    found = audit_log(in_batches({k: x.reshape(-1) for k, x in table.items()}), AuditOptions(GAMMA))
    order, other = (np.lexsort((e.first, e.environment)) for e in (found.episodes, at_once.episodes))
    for mine, theirs in zip(found.episodes, at_once.episodes, strict=True):
        np.testing.assert_allclose(mine[order], theirs[other], atol=1e-9)
    assert found.causes == at_once.causes
    assert at_once.broken


@pytest.mark.parametrize("gamma", [1.0, 0.999, 0.9, 0.5, 0.05])
@pytest.mark.parametrize("segments", [900, 20_000])
def test_segment_sums(gamma, segments) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=100_000) * 10.0 ** rng.integers(-6, 7, 100_000)).astype(np.float32)
    cuts = [5, 6, 7, 4096, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, len(x) - 1]
    starts = np.unique(np.concatenate(([0], rng.integers(0, len(x), segments), cuts)))
    leak, size = segment_sums(x, starts, gamma)
    for k, part in enumerate(np.split(x.astype(np.float64), starts[1:])):
        weight = gamma ** np.arange(len(part))
        assert leak[k] == pytest.approx(weight @ part, abs=1e-9 * (weight @ np.abs(part)))
        assert size[k] == pytest.approx(weight @ np.abs(part), rel=1e-9)


def plain_episodes(shaped, dones, gamma):
    """Every finished episode of a block: (environment, first, length, leak, size), one at a time."""
    for b in range(shaped.shape[1]):
        first, leak, size = 0, 0.0, 0.0
        for t in range(len(shaped)):
            leak += gamma ** (t - first) * float(shaped[t, b])
            size += gamma ** (t - first) * abs(float(shaped[t, b]))
            if dones[t, b]:
                yield b, first, t + 1 - first, leak, size
                first, leak, size = t + 1, 0.0, 0.0


@pytest.mark.parametrize("length", [1, 2, 10, 300])
def test_episodes_are_those_of_a_plain_loop(length) -> None:
    rng = np.random.default_rng(length)
    shaped, dones = rng.normal(size=(700, B)).astype(np.float32), rng.random((700, B)) < 1 / length
    dones[-1, 1:3] = True
    expected = np.array(list(plain_episodes(shaped, dones, GAMMA))).T
    for found, column in zip(audit(shaped, dones, GAMMA).episodes[:5], expected, strict=True):
        np.testing.assert_allclose(found, column, atol=1e-9)


def test_wrong_gamma_is_named() -> None:
    _, shaped, dones = log(gamma=0.99)
    found = audit(shaped, dones, GAMMA)
    assert found.broken > 20
    assert causes(found) == {Cause.WRONG_GAMMA}
    assert "0.99," in found.leaks[0].detail


def test_gamma_is_found_where_f_is_given() -> None:
    F, shaped, dones = log(gamma=0.985)
    assert audit(shaped, dones, rewards=F).gamma == pytest.approx(0.985, abs=1e-7)
    with pytest.raises(ValueError, match="rewards column"):
        audit(shaped, dones)
    with pytest.raises(ValueError, match="no γ makes"):
        audit(F, dones, rewards=F)


def test_unpaid_ends_are_named() -> None:
    F, shaped, dones = log()
    shaped = np.where(dones, F, shaped)
    assert causes(audit(shaped, dones, GAMMA, rewards=F)) <= {Cause.UNPAID_END, Cause.ONE_STEP_EPISODE}
    assert Cause.UNPAID_END in causes(audit(shaped, dones, GAMMA))
    F, shaped, dones = log()
    found = audit(np.where(dones, shaped + F, shaped), dones, GAMMA, rewards=F)
    assert causes(found) == {Cause.LAST_REWARD_KEPT}


def test_clipping_is_named() -> None:
    F, shaped, dones = log(transform=payback.pbim(GAMMA, center=False))
    assert Cause.CLIPPED in causes(audit(np.clip(shaped, -5, 5), dones, GAMMA, rewards=F))
    assert Cause.CLIPPED in causes(audit(np.clip(shaped, -5, 5), dones, GAMMA))


def test_a_constant_factor_on_the_settlement_is_named() -> None:
    _, shaped, dones = log(transform=payback.pbim(GAMMA, center=False))
    found = audit(np.where(dones, 0.5 * shaped, shaped), dones, GAMMA)
    assert causes(found) == {Cause.CONSTANT_FACTOR}
    assert "0.5 times" in found.leaks[0].detail


def test_late_reset_is_named() -> None:
    """The end is noticed one step late: the settlement falls into the next episode."""
    F, _, dones = log(B=1)
    match = payback.match_at_end(GAMMA)
    late = np.concatenate((np.zeros((1, 1), dtype=bool), dones[:-1]))
    _, shaped = payback.shape_rollout(match, match.init(F[0]), F, late)
    assert Cause.LATE_RESET in causes(audit(shaped, dones, GAMMA, rewards=F))


def test_autoreset_rows_are_named() -> None:
    _, shaped, dones = log(B=1)
    paid, ends, valid = [], [], []
    for x, done in zip(shaped[:, 0], dones[:, 0], strict=True):
        paid, ends, valid = [*paid, x], [*ends, done], [*valid, True]
        if done:
            paid, ends, valid = [*paid, 0.7], [*ends, False], [*valid, False]
    unmarked = audit(paid, ends, GAMMA)
    assert causes(unmarked) == {Cause.AUTORESET_ROW}
    marked = audit(paid, ends, GAMMA, valid=valid)
    assert not marked.ok
    assert marked.broken == 0
    assert marked.leaks[0].cause is Cause.INVALID_ROW_PAID
    assert marked.invalid_rows_paid == dones.sum()
    assert audit(np.where(valid, paid, 0), ends, GAMMA, valid=valid).ok


def test_one_step_episodes_are_named() -> None:
    found = audit([0.0, 1.0, 0.0], [True, True, True], GAMMA)
    assert causes(found) == {Cause.ONE_STEP_EPISODE}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "empty"),
        (([1.0, 2.0], [False, False]), "ends an episode"),
        (([1.0], [True, False]), "dones has shape"),
        ((["a"], [True]), "not numbers"),
        (([1.0, np.nan, 0.0], [False, False, True]), "row 1"),
        (([0.0, 1e308, 1e308, 1e308], [True, False, False, True]), "row 1 .* overflows"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        audit(*arguments, GAMMA)  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValueError, match="gamma must lie"):
        audit([0.0], [True], 1.5)


def test_a_log_whose_first_environment_comes_once():
    """Rows of several environments in turn, of which the first has a single row."""
    shaped, dones = [0.0, 1.0, 1.0, 0.0, -2.0, -2.0], [True, False, False, True, True, True]
    found = audit(shaped, dones, gamma=0.5, environments=[3, 0, 1, 2, 0, 1])
    assert found.ok
    assert found.episodes.environment.tolist() == [0, 1, 2, 3]
    assert found.episodes.length.tolist() == [2, 2, 1, 1]
