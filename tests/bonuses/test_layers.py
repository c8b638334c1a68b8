"""Whole blocks of rows pass the networks through oneDNN: the same outputs and gradients as Torch's own layers."""

import pytest
import torch

from payback.bonuses.torch import formulas

BLOCKS, SHAPES = formulas.BLOCK, [(147,), (3, 7, 7)]

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this Torch has no oneDNN")


def output_and_gradient(monkeypatch, shape, rows, onednn):
    monkeypatch.setattr(formulas, "ONEDNN", onednn)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        networks, inputs = formulas._distillation(shape, None, width=32, latent=8), torch.randn(rows, *shape)
    conversions = []
    real = torch.Tensor.to_mkldnn
    monkeypatch.setattr(torch.Tensor, "to_mkldnn", lambda self: conversions.append(len(self)) or real(self))
    output = networks["predictor"](inputs)
    if rows:
        formulas._error_loss(networks, None, None, inputs).backward()
    gradients = [weight.grad for weight in networks["predictor"].parameters()]
    monkeypatch.undo()
    return output, gradients, conversions


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_outputs_and_gradients_are_those_of_torchs_own_layers(monkeypatch, shape):
    plain, slopes, none = output_and_gradient(monkeypatch, shape, 2 * BLOCKS, False)
    fast, same, conversions = output_and_gradient(monkeypatch, shape, 2 * BLOCKS, True)
    assert (none, conversions) == ([], [2 * BLOCKS] * 3)  # the predictor, and both networks of the loss
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
    for one, other in zip(same, slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, BLOCKS - 1, BLOCKS + 1])
def test_other_numbers_of_rows_pass_torchs_own_layers(monkeypatch, rows):
    """Of each number oneDNN would compile a kernel."""
    output, _, conversions = output_and_gradient(monkeypatch, (147,), rows, True)
    assert output.shape == (rows, 8)
    assert conversions == []
