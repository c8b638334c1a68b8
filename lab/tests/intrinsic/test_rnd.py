"""RND's hand-written step against PyTorch's autograd and Adam."""

import jax
import numpy as np
import pytest
import torch

from payback_lab.intrinsic import rnd

CELLS = 11


def network(layers: rnd.Layers) -> torch.nn.Sequential:
    """Build the same predictor in PyTorch."""
    parts: list[torch.nn.Module] = []
    for weights, biases in layers:
        linear = torch.nn.Linear(*weights.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(np.asarray(weights).T))
            linear.bias.copy_(torch.tensor(np.asarray(biases)))
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


def init(seed: int, cells: int = CELLS, hidden: tuple[int, ...] = (32, 32), outputs: int = 32) -> rnd.Rnd:
    return jax.jit(rnd.init, static_argnums=(1, 2, 3))(jax.random.key(seed), cells, hidden, outputs)


def leaves(state: rnd.Rnd) -> list[jax.Array]:
    return jax.tree.leaves(state.predictor)


@pytest.mark.parametrize(
    ("hidden", "rate"),
    [
        ((32, 32), 1e-6),
        pytest.param((32, 32), 1e-3, marks=pytest.mark.slow),
        pytest.param((8,), 1e-3, marks=pytest.mark.slow),
        ((9, 7, 5), 1e-4),
    ],
)
def test_update_is_a_step_of_torch_adam(hidden, rate):
    state = init(1, hidden=hidden, outputs=16)
    target, peer = torch.tensor(np.asarray(state.target)), network(state.predictor)
    optimiser = torch.optim.Adam(peer.parameters(), lr=rate)
    update = jax.jit(lambda state, cell: rnd.update(state, cell, rate))
    first = [np.asarray(x) for x in leaves(state)]
    ours, theirs = [], []
    for cell in np.random.default_rng(0).integers(CELLS, size=300):
        state, error = update(state, cell)
        ours.append(float(error))
        loss = torch.mean((peer(torch.eye(CELLS)[cell]) - target[cell]) ** 2)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        theirs.append(loss.item())
    np.testing.assert_allclose(ours, theirs, rtol=10 * rate if rate > 1e-6 else 1e-6)
    linears = [part for part in peer if isinstance(part, torch.nn.Linear)]
    # Compared as what was moved: the weights themselves hardly move at 1e-6.
    moved = [np.asarray(new) - old for new, old in zip(leaves(state), first, strict=True)]
    expected = [x.detach().numpy().T for linear in linears for x in (linear.weight, linear.bias)]
    for ours_moved, new, old in zip(moved, expected, first, strict=True):
        np.testing.assert_allclose(ours_moved, new - old, atol=0.1 * rate)
    assert max(np.abs(x).max() for x in moved) > 50 * rate


@pytest.mark.slow
def test_error_is_that_before_the_step_and_shrinks_where_it_learns():
    state = init(0)
    net, update = network(state.predictor), jax.jit(lambda state, cell: rnd.update(state, cell, 1e-3))
    errors = []
    for _ in range(200):
        state, error = update(state, 3)
        errors.append(float(error))
    before = torch.mean((net(torch.eye(CELLS)[3]) - torch.tensor(np.asarray(state.target[3]))) ** 2)
    assert errors[0] == pytest.approx(before.item(), rel=1e-5)
    assert errors[-1] < 0.01 * errors[0]


@pytest.mark.slow
def test_networks_begin_as_pytorch_begins_them():
    state = init(0, cells=200)
    for (weights, biases), inputs in zip(state.predictor, (200, 32, 32), strict=True):
        for values in (weights, biases):
            assert np.abs(values).max() <= inputs**-0.5
        assert np.std(weights) == pytest.approx((3 * inputs) ** -0.5, rel=0.05)
    # The target is another network of the same kind: its outputs spread as PyTorch's do, and are not the predictor's.
    torch.manual_seed(0)
    sizes = [(200, 32), (32, 32), (32, 32)]
    parts = [part for size in sizes for part in (torch.nn.Linear(*size), torch.nn.ReLU())][:-1]
    peer = torch.nn.Sequential(*parts)(torch.eye(200)).detach().numpy()
    ours = np.stack([init(k, cells=200).target for k in range(20)])
    assert ours.std() == pytest.approx(peer.std(), rel=0.2)
    assert ours.std(axis=1).mean() == pytest.approx(peer.std(axis=0).mean(), rel=0.3)
    assert rnd.update(state, 0, 1e-6)[1] > 1e-3
