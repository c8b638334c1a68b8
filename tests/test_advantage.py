"""`grm_adv` against its definition in slow loops, in every library; its mutants; borders, jit, vmap, scan; errors."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import payback
from payback import advantage
from payback.check.advantage import advantage_by_loops
from payback.core import blocks, rollout

from .core.libraries import wide

GAMMA, T, B = 0.9, 40, 5
FORMS = {
    "two critics": {"delay": None, "lam": 0.8, "center": False},
    "two critics, centred": {"delay": None, "lam": 0.8},
    "delay 1": {"delay": 1, "lam": 0.7},
    "delay 5": {"delay": 5, "lam": 0.9},
    "delay 300, raw": {"delay": 300, "lam": 0.99, "center": False},
    "lam 0": {"delay": 3, "lam": 0.0},
    "lam 1": {"delay": 3, "lam": 1.0},
}
ARRAYS = {"numpy": np.asarray, "torch": torch.as_tensor, "torch elsewhere": torch.as_tensor, "jax": jnp.asarray}


class Rows(NamedTuple):
    """A rollout; `last_values` is V after each row."""

    bonuses: Any
    dones: Any
    truncated: Any
    valid: Any
    values: Any
    last_values: Any

    def cut(self, begin, end):
        return Rows(*(column[begin:end] for column in self))


def rows(seed=0, T=T) -> Rows:
    rng = np.random.default_rng(seed)
    normal = [rng.normal(size=(T, B)) for _ in range(3)]
    terminated, truncated, valid = (rng.random((T, B)) < share for share in (0.06, 0.06, 0.9))
    truncated &= ~terminated
    valid[:, 0] = True
    made = Rows(normal[0], terminated | truncated, truncated, valid, *normal[1:])
    for column in (made.bonuses, made.values, made.last_values):
        column[~valid] = np.nan  # what an invalid row holds counts for nothing
    return made


def estimated(form, made, array=np.asarray, *, carry=False, valid=True, critic=True, borders=(T,)):
    """Return A^I and the target over several rollouts."""
    estimator = payback.grm_adv(GAMMA, **form, on_truncation="carry" if carry else "settle")
    state, begin, found = estimator.init(array(np.zeros(B))), 0, []
    for border in borders:
        own = made.cut(begin, border)
        given = {"truncated": own.truncated, "valid": own.valid if valid else None}
        given |= {"values": own.values, "last_values": own.last_values} if critic else {}
        given = {name: None if x is None else array(x) for name, x in given.items()}
        state, a, target = estimator.estimate(state, array(own.bonuses), array(own.dones), **given)
        found.append([np.asarray(x) for x in (a, target) if x is not None])
        begin = border
    return [np.concatenate(part) for part in zip(*found, strict=True)]


def expected(form, made, *, carry=False, valid=True, critic=True, borders=(T,)):
    begin, earlier, found = 0, np.zeros(0), []
    for border in borders:
        own = made.cut(begin, border)
        given = {"values": own.values, "next_values": own.last_values} if critic else {}
        options = {"truncated": own.truncated, "on_truncation": "carry" if carry else "settle", "earlier": earlier}
        mask = own.valid if valid else None
        a, target = advantage_by_loops(own.bonuses, own.dones, gamma=GAMMA, valid=mask, **form, **options, **given)
        found.append([x for x in (a, target) if x is not None])
        earlier = np.append(earlier, own.bonuses[own.valid] if valid else own.bonuses)
        begin = border
    return [np.concatenate(part) for part in zip(*found, strict=True)]


def check(form, library="numpy", **how):
    made = rows()
    if not how.get("valid", True):
        made = Rows(*(np.nan_to_num(column, nan=0.5) for column in made))
    made = Rows(*(x.astype(bool) if k in (1, 2, 3) else x for k, x in enumerate(made)))
    for ours, theirs in zip(estimated(form, made, ARRAYS[library], **how), expected(form, made, **how), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.fixture
def elsewhere(request, monkeypatch):
    """Treat CPU tensors as those of a device that NumPy cannot read, and refuse loops over T."""
    if request.getfixturevalue("library") == "torch elsewhere":
        monkeypatch.setattr(rollout, "HOST", ())
        monkeypatch.setattr(rollout, "_step_through", lambda *_: pytest.fail("stepped through the block in Python"))


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("library", ARRAYS)
@pytest.mark.parametrize("critic", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_it_is_what_the_definition_says(form, critic, library):
    """Settled and carried truncations, invalid rows or none, episodes over the borders of three rollouts."""
    with wide(library):
        for carry in (False, True):
            for valid in (True, False):
                how = {"carry": carry, "valid": valid, "critic": critic, "borders": (13, 14, T)}
                check(FORMS[form], library, **how)


summed = blocks.sum_backwards


def walked(_, own, rows, last):
    """The sum in its simple form: Python's numbers, row by row."""
    found, most = np.empty_like(rows.bonus), 1 - own.lam**own.delay
    later, share, ahead = np.zeros_like(found[0]), np.full_like(found[0], most), last
    for t in reversed(range(len(found))):
        G, goes_on, carried, valid, V, after = (None if x is None else x[t] for x in rows)
        goes_on = goes_on.astype(G.dtype)
        new = np.minimum(own.lam * share + (1 - own.lam), most) * goes_on
        new = new if carried is None else new + most * carried.astype(G.dtype)
        if V is None:
            here = G * new + own.discount * goes_on * later
        else:
            kept = (own.trace * later + ahead) * goes_on if after is None else own.trace * later * goes_on + after
            here = own.discount * kept + G * new - V
            ahead = V if valid is None else np.where(valid, V, ahead)
        later, share = (here, new) if valid is None else (np.where(valid, here, later), np.where(valid, new, share))
        found[t] = later
    return found


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("carry", [True, False])
def test_the_fast_sum_is_the_simple_one_to_the_bit(carry, dtype, library, monkeypatch):
    """Over borders of chunks, too; what learners were trained with stays what it was."""
    rollout, array = rows(7, 2 * blocks.CHUNK + 3), ARRAYS[library]
    F, V, L = (np.nan_to_num(x).astype(dtype) for x in (rollout.bonuses, rollout.values, rollout.last_values))
    estimator = payback.grm_adv(GAMMA, 30, 0.97, on_truncation="carry" if carry else "settle")
    for valid in (None, rollout.valid):
        for critic in ({}, {"values": V, "last_values": L}, {"values": V, "last_values": L[0]})[: 2 if carry else 3]:
            given = {"truncated": rollout.truncated, "valid": valid} | critic
            given = {name: None if x is None else array(x) for name, x in given.items()}
            both = []
            for form in (summed, walked):
                monkeypatch.setattr(advantage, "sum_backwards", form)
                state = estimator.init(array(F[0]))
                both.append(np.asarray(estimator.estimate(state, array(F), array(rollout.dones), **given).advantage))
            assert both[0].dtype == dtype
            np.testing.assert_array_equal(both[0].view(np.uint8), both[1].view(np.uint8))


right = advantage.AdvantageEstimator
ON = {
    "no end is seen": lambda own, rows: (own, rows._replace(goes_on=np.ones_like(rows.goes_on))),
    "a carried end is settled": lambda own, rows: (own, rows._replace(carried=None)),
    "a settled end is carried": lambda own, rows: (own, rows._replace(carried=~rows.goes_on)),
    "invalid rows count": lambda own, rows: (own, rows._replace(valid=None)),
    "the discount is gamma": lambda own, rows: (own._replace(discount=GAMMA), rows),
    "the bonus does not fade": lambda own, rows: (own._replace(lam=None), rows),
    "the delay is one too long": lambda own, rows: (own._replace(delay=own.delay + 1), rows),
    "nothing is bootstrapped": lambda own, rows: (own, rows._replace(after=_zeros(rows.after))),
    "GAE has λ_I": lambda own, rows: (own._replace(trace=own.lam), rows),
}


def _zeros(x):
    return None if x is None else np.zeros_like(x)


def mutated(change):
    return lambda xp, own, rows, last: summed(xp, *change(own, rows), last)


MUTANTS = {name: (advantage, "sum_backwards", mutated(change)) for name, change in ON.items()} | {
    "invalid rows are paid": (advantage, "_masked", lambda xp, x, valid: np.nan_to_num(x, nan=1.0)),
    "F̄ starts anew": (right, "estimate", None),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant, monkeypatch):
    owner, name, change = MUTANTS[mutant]
    if mutant == "F̄ starts anew":
        estimate = right.estimate
        change = lambda self, state, bonuses, *rest, **more: estimate(  # noqa: E731
            self, self.init(bonuses[0] * 0), bonuses, *rest, **more
        )
    monkeypatch.setattr(owner, name, change)
    caught = 0
    for critic in (True, False):
        try:
            check(FORMS["delay 5"], carry=True, critic=critic, borders=(20, T))
        except AssertionError:
            caught += 1
    assert caught, "with a second critic and without one"


def test_the_share_is_what_felt_share_says_of_grm():
    """Where no end is in sight, a bonus counts as much as GRM's does in its own advantage under GAE(λ_I)."""
    estimator = payback.grm_adv(GAMMA, delay=7, lam=0.8, center=False)
    found = estimator.estimate((), np.array([[1.0]]), np.array([[False]])).advantage
    assert found.item() == pytest.approx(payback.felt_share(payback.grm(GAMMA, 7), 0.8))


def test_last_values_of_the_rollout_are_those_of_every_row():
    """(B,) stands for the next row's values, which are those of what followed wherever the episode goes on."""
    made, estimator = rows(1), payback.grm_adv(GAMMA, 5, 0.9)
    V = np.nan_to_num(made.values)
    last = np.ones(B)
    state, F = estimator.init(np.zeros(B)), np.nan_to_num(made.bonuses)
    short = estimator.estimate(state, F, made.dones, values=V, last_values=last)
    long = estimator.estimate(state, F, made.dones, values=V, last_values=np.concatenate((V[1:], last[None])))
    np.testing.assert_array_equal(short.advantage, long.advantage)
    skipped = estimator.estimate(state, F, made.dones, valid=made.valid, values=V, last_values=last)
    kept = made.valid[:, 1]
    alone = estimator.estimate(
        state, F[kept, 1:2], made.dones[kept, 1:2], values=V[kept, 1:2], last_values=last[:1], weight=1
    )
    none = payback.grm_adv(GAMMA, 5, 0.9, center=False)
    skipped = none.estimate((), F, made.dones, valid=made.valid, values=V, last_values=last)
    alone = none.estimate((), F[kept, 1:2], made.dones[kept, 1:2], values=V[kept, 1:2], last_values=last[:1])
    np.testing.assert_allclose(skipped.advantage[kept, 1], alone.advantage[:, 0], rtol=1e-12)


def test_dones_one_step_late_are_cleanrls():
    made, estimator = rows(2), payback.grm_adv(GAMMA, 5, 0.9, center=False)
    F = np.nan_to_num(made.bonuses)
    begun = np.concatenate((np.ones((1, B), bool), made.dones))
    right = estimator.estimate((), F, made.dones).advantage
    np.testing.assert_array_equal(estimator.estimate((), F, begun, dones_late=True).advantage, right)
    assert np.abs(estimator.estimate((), F, begun[:-1]).advantage - right).max() > 0.1
    for late, dones in ((False, begun), (True, made.dones)):
        with pytest.raises(ValueError, match=r"CleanRL's dones are one step late .* dones_late=True"):
            estimator.estimate((), F, dones, dones_late=late)


def test_a_schedule_takes_the_bonus_back_to_exactly_zero_and_holds_it():
    shares = np.linspace(0, 1, 81)
    weights = [payback.taken_back(share) for share in shares]
    assert weights[: 5 * 10 + 1] == [1.0] * 51
    assert all(0 < w < 1 for w in weights[51:70])
    assert weights[70:] == [0.0] * 11
    assert sorted(set(weights[50:]), reverse=True) == weights[50:71]
    np.testing.assert_allclose(payback.taken_back(jnp.asarray(shares)), weights, atol=1e-6)
    np.testing.assert_allclose(payback.taken_back(torch.as_tensor(shares)), weights)
    made, estimator = rows(3), payback.grm_adv(GAMMA, 5, 0.9, center=False)
    F, given = np.nan_to_num(made.bonuses), {"values": np.ones((T, B)), "last_values": np.ones(B)}
    whole, none, half = (estimator.estimate((), F, made.dones, **given, weight=w) for w in (1, 0.0, np.float64(0.5)))
    assert not none.advantage.any()
    np.testing.assert_array_equal(none.target, whole.target)
    np.testing.assert_allclose(half.advantage, whole.advantage / 2)
    assert (
        estimator.estimate((), F.astype(np.float32), made.dones, weight=np.float64(0.5)).advantage.dtype == np.float32
    )


def test_no_bonus_adds_nothing():
    estimator = payback.grm_adv(GAMMA, 5, 0.9)
    found = estimator.estimate(estimator.init(np.zeros(B)), np.zeros((T, B)), rows().dones)
    assert not found.advantage.any()


def test_a_scale_before_the_mean():
    """`center` takes any transform that does not repay."""
    scaled = payback.grm_adv(GAMMA, 5, 0.9, center=payback.chain(payback.scale(2.0), payback.center()))
    plain, made = payback.grm_adv(GAMMA, 5, 0.9), rows(4)
    F = np.nan_to_num(made.bonuses)
    twice, once = (e.estimate(e.init(F[0]), F, made.dones).advantage for e in (scaled, plain))
    np.testing.assert_allclose(twice, 2 * once)


# ------------------------------------------------------------------ libraries


def jitted(estimator, made, **options):
    run = jax.jit(lambda state, own: estimator.estimate(state, own.bonuses, own.dones, valid=own.valid, **options))
    return run(estimator.init(jnp.zeros(B, jnp.float32)), Rows(*(jnp.asarray(x) for x in made)))


def test_jit_scan_and_vmap_are_the_same():
    made, estimator = Rows(*(np.nan_to_num(x) for x in rows(5))), payback.grm_adv(GAMMA, 5, 0.9, center=False)
    made = made._replace(dones=made.dones.astype(bool), valid=made.valid.astype(bool))
    once = estimator.estimate((), *(jnp.asarray(x) for x in made[:2]), valid=jnp.asarray(made.valid)).advantage
    np.testing.assert_allclose(jitted(estimator, made).advantage, once, rtol=1e-6)
    each = jax.vmap(lambda F, d, v: estimator.estimate((), F, d, valid=v).advantage, in_axes=1, out_axes=1)
    np.testing.assert_allclose(each(*(jnp.asarray(x) for x in (made.bonuses, made.dones, made.valid))), once, rtol=1e-6)

    centred = payback.grm_adv(GAMMA, 5, 0.9)
    F, d = (jnp.asarray(x).reshape(4, T // 4, B) for x in (made.bonuses, made.dones))
    step = lambda state, row: tuple(centred.estimate(state, *row, weight=payback.taken_back(jnp.float32(0.7))))[:2]  # noqa: E731
    state, scanned = jax.lax.scan(step, centred.init(F[0, 0]), (F, d))
    looped, found = centred.init(F[0, 0]), []
    for k in range(4):
        looped, a, _ = centred.estimate(looped, F[k], d[k], weight=payback.taken_back(0.7))
        found.append(a)
    np.testing.assert_allclose(scanned, np.stack(found), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(state.mean, looped.mean, rtol=1e-6)


def test_torch_has_no_graph_and_keeps_dtypes():
    estimator = payback.grm_adv(GAMMA, 5, 0.9)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        F = torch.rand((T, B), dtype=dtype, requires_grad=True)
        V = torch.rand((T, B), requires_grad=True)
        found = estimator.estimate(
            estimator.init(F[0]), F, torch.zeros((T, B), dtype=torch.bool), values=V, last_values=V[0]
        )
        assert not found.advantage.requires_grad
        assert not found.target.requires_grad
        assert found.advantage.dtype == found.target.dtype == dtype


def test_the_caller_keeps_its_arrays():
    made, estimator = rows(6), payback.grm_adv(GAMMA, 5, 0.9)
    made = Rows(*(np.nan_to_num(x) for x in made))
    before = Rows(*(x.copy() for x in made))
    state = estimator.init(made.bonuses[0])
    found = estimator.estimate(state, made.bonuses, made.dones, values=made.values, last_values=made.last_values)
    found.advantage[:] = found.target[:] = 9
    for x, y in zip(made, before, strict=True):
        np.testing.assert_array_equal(x, y)
    assert float(state.mean) == 0


def test_its_state_is_saved(tmp_path):
    estimator = payback.grm_adv(GAMMA, 5, 0.9)
    state = estimator.estimate(estimator.init(np.zeros(B)), np.ones((T, B)), np.zeros((T, B), bool)).state
    payback.save_state(tmp_path / "F.npz", state)
    assert payback.load_state(tmp_path / "F.npz", like=estimator.init(np.zeros(B))).mean == 1.0


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": 1.5}, r"gamma must lie in \(0, 1\]"),
        ({"gamma": True}, r"gamma must lie in \(0, 1\]"),
        ({"lam": -0.1}, r"lam must lie in \[0, 1\]"),
        ({"lam": float("nan")}, r"lam must lie in \[0, 1\]"),
        ({"gae_lambda": 2}, r"gae_lambda must lie in \[0, 1\]"),
        ({"delay": 0}, "at least 1"),
        ({"delay": 2.5}, "whole number"),
        ({"on_truncation": "drop"}, "'settle' or 'carry'"),
    ],
)
def test_bad_parameters_get_one_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        payback.grm_adv(**{"gamma": GAMMA, "delay": 3, "lam": 0.9} | options)


@pytest.mark.parametrize("center", [payback.grm(GAMMA, 3), None, 1000])
def test_a_bad_centre_is_refused(center):
    with pytest.raises(TypeError, match="center"):
        payback.grm_adv(GAMMA, 3, 0.9, center=center)


ZEROS, OVER = np.zeros((T, B)), np.zeros((T, B), bool)
NAN = np.where(np.arange(T * B).reshape(T, B) == 2 * B + 3, np.nan, 0.0)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"bonuses": np.zeros(T)}, r"shape \(T, B\)"),
        ({"bonuses": np.zeros((0, B)), "dones": OVER[:0]}, "T at least 1"),
        ({"dones": OVER[:, :2]}, r"dones has shape \(40, 2\), not \(40, 5\)"),
        ({"dones": OVER + 2}, "neither 0 nor 1"),
        ({"truncated": OVER[:3]}, r"truncated has shape \(3, 5\)"),
        ({"valid": OVER[:3]}, r"valid has shape \(3, 5\)"),
        ({"bonuses": NAN}, "step 2, environment 3 is nan"),
        ({"values": ZEROS}, "values without last_values"),
        ({"last_values": ZEROS[0]}, "last_values without values"),
        ({"values": ZEROS[1:], "last_values": ZEROS[0]}, r"values has shape \(39, 5\)"),
        ({"values": ZEROS, "last_values": ZEROS[0, 1:]}, r"last_values has shape \(4,\)"),
        ({"values": NAN, "last_values": ZEROS[0]}, r"values\[2, 3\] is nan"),
        ({"values": ZEROS, "last_values": NAN[2]}, r"last_values\[3\] is nan"),
        ({"values": ZEROS, "last_values": ZEROS[0], "truncated": OVER}, r"last_values as \(T, B\)"),
        ({"weight": 1.5}, r"weight must lie in \[0, 1\]"),
        ({"weight": ZEROS[0]}, "one number"),
        ({"weight": np.array(1.5)}, r"weight must lie in \[0, 1\]"),
        ({"weight": np.array(np.nan)}, r"weight must lie in \[0, 1\]"),
    ],
)
def test_bad_rollouts_get_one_sentence(changed, words):
    estimator = payback.grm_adv(GAMMA, 3, 0.9, on_truncation="carry")
    given = {"state": estimator.init(ZEROS[0]), "bonuses": ZEROS, "dones": OVER} | changed
    with pytest.raises(ValueError, match=words):
        estimator.estimate(**given)


def test_other_libraries_states_and_endless_values_are_refused():
    estimator = payback.grm_adv(GAMMA, 3, 0.9)
    with pytest.raises(TypeError, match="one library"):
        estimator.estimate(estimator.init(ZEROS[0]), ZEROS, torch.zeros((T, B)))
    for bad in (OVER.tolist(), None):
        with pytest.raises(TypeError, match="one library"):
            estimator.estimate(estimator.init(ZEROS[0]), ZEROS, bad)
    with pytest.raises(TypeError, match="one library"):
        estimator.estimate(
            estimator.init(torch.zeros(B)), torch.zeros(T, B), torch.zeros(T, B) > 0, weight=jnp.float32(0.5)
        )
    with pytest.raises(TypeError, match="one library"):
        estimator.estimate(estimator.init(ZEROS[0]), ZEROS, OVER, values=torch.zeros((T, B)), last_values=ZEROS[0])
    with pytest.raises(TypeError, match="not its own CenterState"):
        estimator.estimate((), ZEROS, OVER)
    with pytest.raises(ValueError, match="γλ_I = 1 have no bound"):
        payback.grm_adv(1.0, 3, 1.0, center=False).estimate((), ZEROS, OVER, values=ZEROS, last_values=ZEROS[0])
    for bad in ((0.5, 0.5), (0.5, 1.1), (0.5, 0.7, 0.0)):
        with pytest.raises(ValueError, match="taken_back needs"):
            payback.taken_back(0.1, *bad)
    with pytest.raises(ValueError, match="progress must be a share of training, got nan"):
        payback.taken_back(float("nan"))
