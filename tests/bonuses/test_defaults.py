"""Sizes, rates and coefficients are those that the papers and their common implementations use."""

import inspect

import pytest

from payback.bonuses import Count, EpisodicCount, Recency, SimHash
from payback.bonuses import jax as pure
from payback.bonuses import torch as networks
from payback.bonuses.bonus import ALPHA, LIMIT, WARMUP
from payback.bonuses.jax.engine import PureNetworkBonus

LITERATURE = {
    networks.RND: {"width": 256, "latent": 128, "deeper": 2, "rate": 1e-3},
    networks.ICM: {"width": 256, "latent": 32, "rate": 3e-4, "forward": 0.2, "inverse": 0.8},
    networks.RIDE: {"rate": 1e-4, "forward": 10.0, "inverse": 0.1},
    networks.NovelD: {"margin": 0.5, "width": 256, "rate": 1e-4},
    networks.E3B: {"ridge": 0.1, "latent": 128},
    networks.Disagreement: {"models": 5, "width": 128, "rate": 1e-3},
    SimHash: {"bits": 64},
    EpisodicCount: {"root": False},
    Count: {"root": True},
    Recency: {},
}
PAIRS = [
    (pure.rnd, networks.RND), (pure.icm, networks.ICM), (pure.ride, networks.RIDE), (pure.noveld, networks.NovelD),
    (pure.e3b, networks.E3B), (pure.count, Count), (pure.episodic_count, EpisodicCount),
]  # fmt: skip


def defaults(make) -> dict:
    return {name: given.default for name, given in inspect.signature(make).parameters.items()}


@pytest.mark.parametrize("make", LITERATURE, ids=lambda make: make.__name__)
def test_defaults_of_the_literature(make):
    assert defaults(make).items() >= LITERATURE[make].items()


@pytest.mark.parametrize("make", LITERATURE, ids=lambda make: make.__name__)
def test_one_coefficient_for_all(make):
    assert defaults(make)["alpha"] == ALPHA


def test_jax_has_the_same_warm_up_and_limit():
    torch, ours = defaults(networks.NetworkBonus), defaults(PureNetworkBonus)
    for name in ("warmup", "clip", "learn_every", "share", "batch_size", "normalise", "whiten"):
        assert torch[name] == ours[name]
    assert (torch["warmup"], torch["clip"]) == (WARMUP, LIMIT)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].__name__)
def test_jax_has_the_defaults_of_torch_and_numpy(pair):
    ours, theirs = map(defaults, pair)
    shared = {name for name in ours.keys() & theirs.keys() if ours[name] is not inspect.Parameter.empty}
    assert "alpha" in shared
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
