"""The pure ledger: what it pays, owes and reports is what the definition says, in every array library."""

import pickle
from functools import lru_cache, partial

import numpy as np
import pytest

import payback
from payback.ledger import LEAST, TOLERANCE, make
from payback.theory import match_episode, potential_of

from .integrations.own_match import forgets_the_end, halves

GAMMA, T, B = 0.9, 150, 3
pytestmark = pytest.mark.filterwarnings("ignore::payback.InterestWarning")


def after(delay):
    return lambda events: lambda t, i, N: float(t == min(i + delay, N - 1))


def at_end(events):
    return lambda t, i, N: float(t == N - 1)


def when(events):
    """Each loan is repaid at the first event after it, or at the end."""
    return lambda t, i, N: float(t == min([e for e in events if e > i] + [N - 1]) if i < N - 1 else t == i)


def geometric(rate):
    def m(t, i, N):
        return rate ** (t - i - 1) * ((1 - rate) if t < N - 1 else 1.0) if t > i else float(t == i == N - 1)

    return lambda events: m


MATCHES = {
    "after": (payback.match_after(GAMMA, 4), after(4)),
    "geometric": (payback.match_geometric(GAMMA, 0.7), geometric(0.7)),
    "at_end": (payback.match_at_end(GAMMA), at_end),
    "when": (payback.match_when(GAMMA), when),
}
CASES = [
    *((name, "settle") for name in MATCHES),
    *((name, "carry") for name in ("after", "geometric")),
]


def stream(seed):
    """(F, terminated, truncated, valid, event, reset), all (T, B); ends of both kinds at once, and in invalid rows."""
    chance = np.random.default_rng(seed)
    flags = [chance.random((T, B)) < p for p in (0.05, 0.05, 0.85, 0.1, 0.02)]
    flags[1] |= flags[0] & (chance.random((T, B)) < 0.3)
    return chance.normal(size=(T, B)), *flags


def by_definition(matching, stream, settles):
    """Shape each episode by itself: (shaped, owed, residual is due, dropped), all (T, B)."""
    F, terminated, truncated, valid, event, reset = stream
    shaped, owed, ends, dropped = np.zeros((T, B)), np.zeros((T, B)), np.zeros((T, B), bool), np.zeros((T, B))
    for b in range(B):
        rows, debt = [], 0.0

        def close(b, rows, settled):
            """An episode that is not settled is one that goes on for long, without a bonus."""
            if not rows:
                return 0.0
            rewards = np.concatenate((F[rows, b], np.zeros(0 if settled else 40)))
            m = matching([k for k, t in enumerate(rows) if event[t, b]])
            shaped[rows, b] = match_episode(rewards, m, GAMMA)[: len(rows)]
            debts = potential_of(rewards, m, GAMMA)[1 : len(rows) + 1]
            owed[rows, b] = debts
            return debts[-1]

        for t in range(T):
            if reset[t, b]:
                dropped[t, b] = close(b, rows, settled=False)
                rows = []
            if not valid[t, b]:
                continue
            rows.append(t)
            cut = truncated[t, b] and not terminated[t, b]
            if terminated[t, b] or cut:
                ends[t, b] = settles or not cut
                close(b, rows, settled=ends[t, b])
                rows = []
        close(b, rows, settled=False)
        for t in range(T):  # what is owed does not change in an invalid row
            debt = owed[t, b] if valid[t, b] else 0.0 if reset[t, b] else debt
            owed[t, b] = debt
            if valid[t, b] and (terminated[t, b] or truncated[t, b]):
                debt = 0.0
    return shaped, owed, ends, dropped


def play(ledger, state, rows):
    """Step through rows of (F, terminated, truncated, valid, event, reset)."""
    found = []
    for F, terminated, truncated, valid, event, reset in zip(*rows, strict=True):
        state, dropped = ledger.reset(state, reset)
        state, step = ledger.step(state, F, terminated, truncated, valid, event)
        found.append((*step, dropped))
    return [np.stack([np.asarray(x) for x in column]) for column in zip(*found, strict=True)]


def numpy_of(ledger, rows, dtype):
    return play(ledger, ledger.init(np.zeros(B, dtype)), (rows[0].astype(dtype), *rows[1:]))


def torch_of(ledger, rows, dtype):
    torch = pytest.importorskip("torch")
    F, *flags = (torch.as_tensor(x) for x in rows)
    dtype = getattr(torch, np.dtype(dtype).name)
    return play(ledger, ledger.init(torch.zeros(B, dtype=dtype)), (F.to(dtype), *flags))


@lru_cache
def jax_run(ledger):
    """One environment a time, under jit, vmap and scan."""
    jax = pytest.importorskip("jax")

    def one(state, row):
        F, terminated, truncated, valid, event, reset = row
        state, dropped = ledger.reset(state, reset)
        state, step = ledger.step(state, F, terminated, truncated, valid, event)
        return state, (*step, dropped)

    return jax.jit(jax.vmap(partial(jax.lax.scan, one), in_axes=(None, 1), out_axes=(0, 1)))


def jax_of(ledger, rows, dtype):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(dtype == np.float64):
        rows = [jax.numpy.asarray(x) for x in (rows[0].astype(dtype), *rows[1:])]
        _, found = jax_run(ledger)(ledger.init(jax.numpy.zeros((), dtype)), tuple(rows))
        return [np.asarray(x) for x in found]


@pytest.mark.parametrize("library", [numpy_of, torch_of, jax_of])
@pytest.mark.parametrize(
    ("name", "mode", "dtype"),
    [*((*case, np.float64) for case in CASES), *((*case, np.float32) for case in CASES if case[0] == "after")],
)
def test_it_pays_and_owes_what_the_definition_says(name, mode, library, dtype):
    match, matching = MATCHES[name]
    for seed in range(2):
        rows = stream(seed)
        _, terminated, truncated, *_ = rows
        shaped, owed, ends, dropped = by_definition(matching, rows, mode == "settle")
        found = library(make(match, mode), rows, dtype)
        size = 1e-9 if dtype == np.float64 else 2e-4
        for expected, seen in ((shaped, found[0]), (owed, found[1]), (dropped, found[5])):
            assert seen.dtype == dtype
            np.testing.assert_allclose(seen, expected, rtol=size, atol=size * max(1, abs(owed).max()))
        np.testing.assert_array_equal(found[2], terminated | truncated if mode == "settle" else terminated)
        np.testing.assert_array_equal(found[3], (truncated & ~terminated) & (mode == "carry"))
        assert found[4].max() <= TOLERANCE
        assert ends.sum() > 10
        assert np.count_nonzero(dropped) > 2


def test_the_residual_is_that_of_the_definition():
    """|Σγ^t F′_t| / Σγ^t |F′_t| of short episodes, for a match that forgets the end."""
    gamma, chance = 0.99, np.random.default_rng(0)
    ledger = make(forgets_the_end(payback.match_after(gamma, 3)))
    state, no = ledger.init(np.zeros(B)), np.zeros(B, bool)
    for length in (1, 5, 30):
        shaped = []
        for t in range(length):
            state, step = ledger.step(state, chance.normal(size=B), np.full(B, t == length - 1), no)
            shaped.append(step.shaped)
            assert t == length - 1 or not step.residual.any()
        weights = gamma ** np.arange(length)
        total, size = weights @ np.array(shaped), weights @ np.abs(shaped)
        np.testing.assert_allclose(step.residual, abs(total) / (size + LEAST))


@pytest.mark.parametrize("broken", [False, True])
def test_numpy_adds_up_later_what_torch_adds_up_at_every_step(broken):
    """Most NumPy steps only queue their payment; the others, and Torch, are the slow oracle."""
    match = payback.match_after(GAMMA, 3)
    ledger, rows = make(forgets_the_end(match) if broken else match, "carry"), stream(7)
    ours, theirs = (library(ledger, rows, np.float64)[4] for library in (numpy_of, torch_of))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert (ours.max() > 0.01) == broken


def test_flags_that_are_all_false_are_no_flags():
    ledger, no, F = make(payback.grm(GAMMA, 3)), np.zeros(B, bool), np.random.default_rng(0).normal(size=(100, B))
    flagged = bare = ledger.init(np.zeros(B))
    for reward in F:
        flagged, step = ledger.step(flagged, reward, no, no)
        bare, same = ledger.step(bare, reward, None, None)
        assert [x.tolist() for x in step[:4]] == [same.shaped.tolist(), same.owed.tolist(), no.tolist(), no.tolist()]
        assert not step.residual.any()
        assert same[2:] == (None, None, None)
        assert len(flagged.pending) == len(bare.pending)
    np.testing.assert_array_equal(flagged.paid.sums, bare.paid.sums)


@pytest.mark.parametrize("mode", ["settle", "carry"])
def test_an_episode_that_is_not_settled_has_no_residual(mode):
    ledger = make(forgets_the_end(payback.match_after(GAMMA, 3)), mode)
    state, no, yes = ledger.init(np.zeros(B)), np.zeros(B, bool), np.ones(B, bool)
    for terminated, truncated, valid in ((no, no, None), (yes, no, no), (no, yes, None), (no, no, None)):
        state, step = ledger.step(state, np.ones(B), terminated, truncated, valid)
        assert step.residual.any() == (mode == "settle" and truncated.all())
    state, _ = ledger.reset(state, yes)
    _, step = ledger.step(state, np.ones(B), yes, no)
    assert step.residual == pytest.approx(1), "what was paid before the reset does not count"


def bonuses(seed, T, B):
    """(kind, (T, B) F): of every size, heavy-tailed, rare, alternating."""
    chance = np.random.default_rng(seed)
    normal, sign = chance.normal(size=(T, B)), np.where(np.arange(T) % 2, -1.0, 1.0)[:, None]
    yield "ones", np.ones((T, B))
    yield "normal", normal
    yield "cauchy", chance.standard_cauchy((T, B))
    yield "of every size", normal * 10.0 ** chance.uniform(-9, 6, (T, B))
    yield "large at first", normal * np.where(np.arange(T) < 20, 1e6, 1.0)[:, None]
    yield "rare", 1.0 * (chance.random((T, B)) < 0.005)
    yield "nearly cancelling", 1000 * sign + 1e-3 * normal
    yield "invalid rows", np.where(chance.random((T, B)) < 0.3, 0.0, normal)
    yield "tiny", 1e-8 * normal


GAMMAS = [0.9, 0.99, 0.999, 1.0]
LAWFUL = {
    "after-1": lambda gamma: payback.match_after(gamma, 1),
    "grm-30": lambda gamma: payback.grm(gamma, 30),
    "after-100": lambda gamma: payback.match_after(gamma, 100),
    "geometric": lambda gamma: payback.match_geometric(gamma, 0.8 * gamma),
    "slow": lambda gamma: payback.match_geometric(gamma, 0.98 * gamma),
    "own": lambda gamma: halves(pytest.importorskip("jax").numpy, gamma),
}
LENGTHS = [257, 5000]
"""One step after a comparison, and long after γ^t is 0 in float32."""
LONG, WIDE = 5100, 16


def residuals_of(match):
    """Return a function of F, (LONG, WIDE), and a length: the residuals of episodes of that many steps, in JAX."""
    jax = pytest.importorskip("jax")
    jnp, ledger = jax.numpy, make(match)

    def one(state, row):
        F, ended = row
        state, step = ledger.step(state, F, ended, jnp.zeros_like(ended))
        return state, step.residual

    start = ledger.init(jnp.zeros(WIDE))
    run = jax.jit(lambda F, ends: jax.lax.scan(one, start, (F, ends))[1])

    def residuals(F, length):
        ends = np.tile((np.arange(LONG) % length == length - 1)[:, None], (1, WIDE))
        return np.asarray(run(jnp.asarray(F, dtype=jnp.float32), ends))[length - 1 :: length]

    return residuals


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", LAWFUL)
def test_lawful_streams_are_not_accused(name, gamma):
    """In float32, where rounding is worst."""
    residuals = residuals_of(LAWFUL[name](gamma))
    for length in LENGTHS:
        for kind, F in bonuses(0, LONG, WIDE):
            assert residuals(F, length).max() <= TOLERANCE, (kind, length)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", ["after-1", "grm-30", "slow"])
def test_a_debt_that_is_left_open_shows_whatever_the_length(name, gamma):
    chance, residuals = np.random.default_rng(0), residuals_of(forgets_the_end(LAWFUL[name](gamma)))
    for length in LENGTHS:
        assert np.mean(residuals(chance.uniform(0.5, 1.5, (LONG, WIDE)), length) > TOLERANCE) > 0.95


def test_a_wrong_debt_shows_in_a_long_episode():
    """A match that pays right but owes wrong: the learner would observe, and a reset would drop, another debt."""
    right = payback.match_after(GAMMA, 3)
    wrong = payback.Match(
        right.init, right.update, gamma=GAMMA, owed=lambda state: 2 * right.owed(state), drop=right.drop
    )
    ledger, no = make(wrong), np.zeros(1, bool)
    state = ledger.init(np.zeros(1))
    for t in range(100):
        state, step = ledger.step(state, np.ones(1), np.array([t == 99]), no)
    assert step.residual > 0.1


def test_payments_that_are_not_numbers_never_pass():
    jnp = pytest.importorskip("jax").numpy
    ledger, no, yes = make(payback.match_at_end(0.001)), jnp.array([False]), jnp.array([True])
    state = ledger.init(jnp.zeros(1))
    for _ in range(30):
        state, step = ledger.step(state, jnp.ones(1), no, no)
    _, step = ledger.step(state, jnp.ones(1), yes, no)
    assert not (step.residual <= TOLERANCE).any()


def test_going_on_from_loans_judges_from_the_debt():
    ledger, no, yes = make(payback.match_after(GAMMA, 3)), np.zeros(B, bool), np.ones(B, bool)
    state, _ = ledger.step(ledger.init(np.zeros(B)), np.ones(B), no, no)
    again = ledger.init(np.zeros(B), state.loans)
    np.testing.assert_array_equal(again.owed, state.owed)
    _, step = ledger.step(again, np.ones(B), yes, no)
    assert step.residual.max() <= TOLERANCE


def test_centred_bonuses_are_the_same_in_every_library():
    rows, ledger = stream(5), make(payback.grm(GAMMA, 4))
    rows = (*rows[:5], np.zeros((T, B), bool))
    ours = numpy_of(ledger, rows, np.float64)
    for theirs in (torch_of(ledger, rows, np.float64),):
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-10)


def test_a_transform_without_a_match_owes_nothing():
    ledger, no, yes = make(payback.scale(2.0)), np.zeros(B, bool), np.ones(B, bool)
    state = ledger.init(np.zeros(B))
    state, step = ledger.step(state, np.ones(B), yes, no)
    assert step.shaped.tolist() == [2.0] * B
    assert not step.owed.any()
    assert not step.residual.any()
    assert not ledger.reset(state, yes)[1].any()


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"reward": np.array([1.0, np.nan, 1.0])}, ValueError, "environment 1"),
        ({"reward": np.ones(2)}, ValueError, "environments"),
        ({"reward": np.ones(B, np.float32)}, TypeError, "float32"),
        ({"terminated": np.zeros(1, bool)}, ValueError, "terminated"),
        ({"truncated": np.full(B, 3)}, ValueError, "truncated"),
        ({"valid": np.full(B, 0.5)}, ValueError, "valid"),
    ],
)
def test_wrong_arrays_are_refused(change, error, word):
    ledger = make(payback.match_after(GAMMA, 3))
    state, no = ledger.init(np.zeros(B)), np.zeros(B, bool)
    arrays = {"reward": np.ones(B), "terminated": no, "truncated": no, **change}
    with pytest.raises(error, match=word):
        ledger.step(state, **arrays)


def test_what_overflows_is_refused_and_the_state_is_as_it_was():
    ledger, no = make(payback.match_after(0.5, 1)), np.zeros(1, bool)
    before, _ = ledger.step(ledger.init(np.zeros(1)), np.array([8e307]), no, no)
    with pytest.raises(OverflowError, match="float64"), np.errstate(over="ignore"):
        ledger.step(before, np.array([-1e308]), no, no)
    assert before.owed.item() == 1.6e308


@pytest.mark.parametrize("name", ["at_end", "when"])
def test_carrying_is_refused_where_a_debt_may_never_fall_due(name):
    with pytest.raises(ValueError, match="carry"):
        make(MATCHES[name][0], "carry")


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="RewardTransform"):
        make(payback.grm)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'settle' or 'carry'"):
        make(payback.grm(GAMMA, 3), "drop")  # type: ignore[arg-type]


def test_its_state_can_be_pickled():
    ledger, no = make(payback.grm(GAMMA, 3)), np.zeros(B, bool)
    state, _ = ledger.step(ledger.init(np.zeros(B)), np.ones(B), no, no)
    again = pickle.loads(pickle.dumps(state))
    paid = [ledger.step(x, np.ones(B), ~no, no)[1].shaped for x in (state, again)]
    np.testing.assert_array_equal(*paid)
