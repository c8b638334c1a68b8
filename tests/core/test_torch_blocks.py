"""Torch's block forms for accelerators, run on CPU tensors with NumPy's forms switched off, are equal to stepping."""

import numpy as np
import pytest
import torch

import payback
from payback.core import rollout

GAMMA = 0.9
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::payback.InterestWarning")]
MAKE = {
    "at_end": lambda: payback.match_at_end(GAMMA),
    "when": lambda: payback.match_when(GAMMA),
    "after": lambda: payback.match_after(GAMMA, 4),
    "after 0": lambda: payback.match_after(GAMMA, 0),
    "after 40": lambda: payback.match_after(GAMMA, 40),
    "evenly": lambda: payback.match_evenly(GAMMA, 3),
    "ages": lambda: payback.match_from_ages(GAMMA, [0, 0.5, 0, 0.5]),
    "geometric": lambda: payback.match_geometric(GAMMA, 0.5),
    "pbim": lambda: payback.pbim(GAMMA),
    "grm": lambda: payback.grm(GAMMA, 5, center=payback.center(50)),
    "rms": lambda: payback.chain(payback.scale_by_rms(50), payback.match_after(GAMMA, 2), payback.scale(2)),
    "rms of all": lambda: payback.scale_by_rms(),
    "std": lambda: payback.chain(payback.scale_by_std(), payback.match_after(GAMMA, 2)),
    "recent std": lambda: payback.scale_by_std(30),
    "return std": lambda: payback.scale_by_return_std(GAMMA),
    "schedule": lambda: payback.scale_by_schedule(lambda steps: (1 - steps / 300).clip(0, 1)),
    "constant": lambda: payback.scale_by_schedule(lambda steps: 0.5),
}


@pytest.fixture
def accelerator(monkeypatch):
    """Treat CPU tensors as those of a device that NumPy cannot read, and refuse to step through them."""
    monkeypatch.setattr(rollout, "HOST", ())
    monkeypatch.setattr(rollout, "_step_through", lambda *_: pytest.fail("stepped through the block in Python"))


def stream(T=60, B=4, seed=0):
    rng = np.random.default_rng(seed)
    valid = rng.random((T, B)) < 0.85
    valid[:, 0] = True
    columns = rng.normal(size=(T, B)), rng.random((T, B)) < 0.1, valid, rng.random((T, B)) < 0.2
    return [torch.from_numpy(column) for column in columns]


def stepped(transform, state, rewards, dones, valid, settle):
    paid = []
    for t in range(len(rewards)):
        state, shaped = transform.update(state, rewards[t], dones[t], valid[t], settle[t])
        paid.append(shaped)
    return state, torch.stack(paid)


@pytest.mark.parametrize("all_valid", [True, False])
@pytest.mark.parametrize("name", MAKE)
def test_blocks_are_equal_to_stepping(name, all_valid, accelerator):
    """In float64, over three blocks that cut episodes, the second of one row; the states carried on agree as well."""
    transform, columns = MAKE[name](), stream()
    if all_valid:
        columns[2] = torch.ones_like(columns[2])
    one = other = transform.init(columns[0][0])
    for cut in (slice(0, 30), slice(30, 31), slice(31, 60)):
        block = [column[cut] for column in columns]
        one, expected = stepped(transform, one, *block)
        other, paid = payback.shape_rollout(
            transform, other, block[0], block[1], *(block[2:] if not all_valid else (None, block[3]))
        )
        torch.testing.assert_close(paid, expected, rtol=1e-9, atol=1e-9)
    if isinstance(transform, payback.Match):
        torch.testing.assert_close(payback.owed(transform, other), payback.owed(transform, one), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MAKE)
def test_an_empty_block_changes_nothing(name, accelerator):
    transform, nothing = MAKE[name](), torch.zeros(0, 4)
    state = transform.init(torch.zeros(4))
    after, paid = payback.shape_rollout(transform, state, nothing, nothing.bool())
    assert (after, paid.shape) == (state, (0, 4))


def test_float32_is_summed_in_float64(accelerator):
    """An episode of 3000 steps repays exactly: Σγ^t F′_t is 0 to the rounding of float32."""
    rewards, dones = (
        torch.rand(3000, 3, generator=torch.Generator().manual_seed(0)),
        torch.zeros(3000, 3, dtype=torch.bool),
    )
    dones[-1] = True
    for transform in (payback.match_after(0.99, 30), payback.match_evenly(0.99, 9), payback.match_geometric(0.99, 0.9)):
        _, paid = payback.shape_rollout(transform, transform.init(rewards[0]), rewards, dones)
        terms = 0.99 ** torch.arange(3000.0, dtype=torch.float64)[:, None] * paid
        assert (terms.sum(0).abs() / terms.abs().sum(0)).max() < 1e-5


def test_zeros_for_longer_than_the_interest_is_a_number(accelerator):
    transform, rewards = payback.match_at_end(0.5), torch.zeros(3000, 2)
    state, paid = payback.shape_rollout(
        transform, transform.init(rewards[0]), rewards, torch.zeros(3000, 2, dtype=torch.bool)
    )
    assert (paid == 0).all()
    assert (payback.owed(transform, state) == 0).all()
