"""The watch of gymnax's and rsl_rl's adapters: no lawful stream is accused, and no end is hidden by the discount."""

import numpy as np
import pytest

import payback

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from payback.integrations.residual import add_step, nothing_paid  # noqa: E402
from payback.integrations.watch import TOLERANCE  # noqa: E402

from .own_match import forgets_the_end, halves  # noqa: E402

B, T = 32, 5100
GAMMAS = [0.9, 0.99, 0.999, 1.0]
MATCHES = {
    "after-1": lambda gamma: payback.match_after(gamma, 1),
    "grm-30": lambda gamma: payback.grm(gamma, 30),
    "after-100": lambda gamma: payback.match_after(gamma, 100),
    "geometric": lambda gamma: payback.match_geometric(gamma, 0.8),
    "slow": lambda gamma: payback.match_geometric(gamma, 0.98 * gamma),
    "own": lambda gamma: halves(jnp, gamma),
}
LENGTHS = [257, 5000]
"""One step after the episode was judged from its debt, and long after γ^t is 0 in float32."""


def bonuses(seed):
    """(kind, (T, B) F in float32): of every size, heavy-tailed, rare, alternating, 0 in invalid rows."""
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


def judged(match, length):
    """Return a function of F, (T, B): the residuals of the episodes, which are `length` steps long."""

    def one(carry, row):
        (loans, paid), (F, ended) = carry, row
        loans, shaped = match.update(loans, F, ended)
        paid, residual = add_step(paid, shaped, match.owed(loans), ended, ended, match.gamma)
        return (loans, paid), residual

    ends = jnp.tile((jnp.arange(T) % length == length - 1)[:, None], (1, B))
    start = (match.init(jnp.zeros(B)), nothing_paid(jnp.zeros(B)))
    return jax.jit(lambda F: jax.lax.scan(one, start, (F, ends))[1][length - 1 :: length])


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", MATCHES)
def test_lawful_streams_are_not_accused(name, gamma):
    for length in LENGTHS:
        residuals = judged(MATCHES[name](gamma), length)
        for kind, F in bonuses(seed=0):
            found = np.asarray(residuals(jnp.asarray(F, dtype=jnp.float32)))
            assert found.max() <= TOLERANCE, (kind, length)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", ["after-1", "grm-30", "slow"])
def test_an_end_that_is_not_settled_is_seen(name, gamma):
    """Whatever the length, γ = 1 included."""
    chance = np.random.default_rng(0)
    for length in LENGTHS:
        F = jnp.asarray(chance.uniform(0.5, 1.5, (T, B)), dtype=jnp.float32)
        found = np.asarray(judged(forgets_the_end(MATCHES[name](gamma)), length)(F))
        assert np.mean(found > TOLERANCE) > 0.95


def test_payments_that_are_not_numbers_are_never_called_lawful():
    """A debt that overflowed stays in the residual also where the episode goes on from it."""
    paid = nothing_paid(np.zeros(1, np.float32))
    no, yes, zero = np.array([False]), np.array([True]), np.zeros(1, np.float32)
    with np.errstate(invalid="ignore"):
        paid, _ = add_step(paid, zero, np.array([np.inf], np.float32), no, no, 0.001)
        _, residual = add_step(paid, zero, zero, yes, yes, 0.001)
    assert not (residual <= TOLERANCE).any()
