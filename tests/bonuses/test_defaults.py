"""Sizes, rates and coefficients are those that the papers and their common implementations use."""

import inspect

import pytest

from payback.bonuses import Count, EpisodicCount, SimHash
from payback.bonuses import jax as pure
from payback.bonuses import torch as networks

LITERATURE = {
    networks.RND: {"width": 256, "latent": 128, "deeper": 2, "rate": 1e-3},
    networks.ICM: {"width": 256, "latent": 32, "rate": 3e-4, "forward": 0.2, "inverse": 0.8},
    networks.RIDE: {"alpha": 0.1, "rate": 1e-4, "forward": 10.0, "inverse": 0.1},
    networks.NovelD: {"alpha": 0.05, "margin": 0.5, "width": 256, "rate": 1e-4},
    networks.E3B: {"alpha": 1.0, "ridge": 0.1, "latent": 32},
    networks.Disagreement: {"models": 5, "width": 128, "rate": 1e-3},
    SimHash: {"bits": 64},
    EpisodicCount: {"alpha": 0.02, "root": False},
    Count: {"root": True},
}


def defaults(make) -> dict:
    return {name: given.default for name, given in inspect.signature(make).parameters.items()}


@pytest.mark.parametrize("make", LITERATURE, ids=lambda make: make.__name__)
def test_defaults_of_the_literature(make):
    assert defaults(make).items() >= LITERATURE[make].items()


@pytest.mark.parametrize(
    ("pair"),
    [(pure.rnd, networks.RND), (pure.icm, networks.ICM), (pure.count, Count), (pure.episodic_count, EpisodicCount)],
    ids=lambda pair: pair[0].__name__,
)
def test_jax_has_the_defaults_of_torch_and_numpy(pair):
    ours, theirs = map(defaults, pair)
    shared = {name for name in ours.keys() & theirs.keys() if ours[name] is not inspect.Parameter.empty}
    assert "alpha" in shared
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
