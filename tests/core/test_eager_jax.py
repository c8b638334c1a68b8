"""JAX arrays outside `jit`: a rollout is compiled once for each transform and shape, not at every call."""

import gc
import logging
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import payback

from .cases import Stream, assert_close, quiet, random_stream, step_through
from .libraries import LIBRARIES, rollouts, wide

pytestmark = [pytest.mark.jax, quiet]

own = payback.RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, 2 * r))
TRANSFORMS = {
    "scanned": payback.match_geometric(0.9, 0.5),
    "at end": payback.pbim(0.9),
    "unrolled": payback.grm(0.9, 3),
    "counted down": payback.match_after(0.9, 40),
    "one's own": payback.chain(own, payback.center(9), payback.match_when(0.9)),
}


class Compilations(logging.Handler):
    """Keeps what JAX says that it compiles."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("Finished XLA compilation"):
            self.names.append(record.getMessage())

    def __enter__(self) -> list[str]:
        self.logged = jax.log_compiles()
        self.logged.__enter__()
        logging.getLogger("jax").addHandler(self)
        return self.names

    def __exit__(self, *error: Any) -> None:
        logging.getLogger("jax").removeHandler(self)
        self.logged.__exit__(*error)


def blocks(stream: Stream) -> list[Any]:
    return LIBRARIES["jax"].stream(stream)


@pytest.mark.parametrize("valid", [False, True], ids=["all valid", "some invalid"])
@pytest.mark.parametrize("which", TRANSFORMS)
def test_a_second_rollout_compiles_nothing(which: str, valid: bool):
    """Each compilation keeps megabytes for as long as the process lives."""
    transform, first = TRANSFORMS[which], random_stream(1, 50, 3, valid=valid)
    state = transform.init(jnp.zeros(3, jnp.float32))
    rollout = blocks(first._replace(rewards=first.rewards.astype(np.float32)))
    with Compilations() as compiled:
        state, _ = payback.shape_rollout(transform, state, *rollout)
        assert compiled, "the first rollout is compiled, so that counting works"
        state, _ = payback.shape_rollout(transform, state, *rollout)  # the state of a rollout is not weakly typed
        compiled.clear()
        for _ in range(3):
            state, _ = payback.shape_rollout(transform, state, *rollout)
    assert not compiled


def test_your_own_transform_is_traced_once():
    calls = []

    def update(state: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
        calls.append(1)
        return state, 2 * reward

    transform = payback.RewardTransform(lambda example: (), update)
    for _ in range(4):
        payback.shape_rollout(transform, (), jnp.ones((5, 2)), jnp.zeros((5, 2), bool))
    assert len(calls) == 1


@pytest.mark.parametrize("valid", [False, True], ids=["all valid", "some invalid"])
@pytest.mark.parametrize("which", TRANSFORMS)
def test_outside_jit_rollouts_are_those_under_jit_and_stepping(which: str, valid: bool):
    transform, stream = TRANSFORMS[which], random_stream(2, 60, 3, valid=valid, settle=True)
    with wide("jax"):
        begin = LIBRARIES["jax"].init(transform, stream)
        jitted = rollouts("jax", transform, begin, stream, pieces=2)[1]
        state, shaped = begin, []
        for first in (0, 30):
            state, block = payback.shape_rollout(transform, state, *blocks(stream.rows(first, first + 30)))
            shaped.append(np.asarray(block))
    assert_close(np.concatenate(shaped), jitted)
    assert_close(np.concatenate(shaped), step_through(transform, stream)[1])


def test_a_transform_that_cannot_be_a_key_is_shaped_too():
    class Doubling:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, state: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> Any:
            return state, 2 * reward

    transform = payback.RewardTransform(lambda example: (), Doubling())
    shaped = payback.shape_rollout(transform, (), jnp.ones((5, 2)), jnp.zeros((5, 2), bool))[1]
    assert shaped.tolist() == [[2, 2]] * 5


@pytest.mark.parametrize("constant", [False, True], ids=["an argument", "a constant"])
def test_nothing_of_a_trace_is_kept(constant: bool):
    """A transform made under `jit` may hold a tracer, which must not outlive the trace."""
    kept: list[Any] = []
    ones, no = jnp.ones((5, 2)), jnp.zeros((5, 2), bool)

    @jax.jit
    def run(c: Any, rewards: Any, dones: Any) -> Any:
        rewards, dones = (ones, no) if constant else (rewards, dones)
        own = payback.RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, c * r))
        kept.append(weakref.ref(own))
        return payback.shape_rollout(own, (), rewards, dones)[1]

    with jax.checking_leaks():
        run(2.0, ones, no)
    gc.collect()
    assert kept[0]() is None
