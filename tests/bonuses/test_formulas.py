"""The network bonuses beside a plain re-computation of their formulas, in NumPy, from their own weights."""

import numpy as np
import pytest
import torch

from payback.bonuses.torch.encoders import ActionEncoder, ObservationEncoder

from .cases import NETWORKS, STILL
from .streams import play, transitions

ROLLOUT = transitions(T=20, B=3)
T, B = ROLLOUT["done"].shape
PLACES = ROLLOUT["next_obs"].argmax(-1)


def layers(network):
    """A plain function of NumPy rows from a network's weights."""
    weights = [parameter.detach().double().numpy() for parameter in network.parameters()]

    def run(x):
        for i in range(0, len(weights), 2):
            x = x @ weights[i].T + weights[i + 1]
            x = np.maximum(x, 0) if i + 2 < len(weights) else x
        return x

    return run


def onehot(action):
    return np.eye(3)[action]


def visits():
    """n(s′) of this episode, the start included."""
    n = np.zeros((T, B))
    for k in range(B):
        seen = []
        for t in range(T):
            seen = seen or [ROLLOUT["obs"][t, k].argmax()]
            seen.append(PLACES[t, k])
            n[t, k] = seen.count(seen[-1])
            seen = [] if ROLLOUT["done"][t, k] else seen
    return n


def rnd_error(nets, x):
    return ((layers(nets["predictor"])(x) - layers(nets["target"])(x)) ** 2).sum(-1)


def rnd(nets, x, a, y):
    return rnd_error(nets, y)


def icm(nets, x, a, y):
    phi = layers(nets["encoder"])
    return ((layers(nets["model"])(np.concatenate([phi(x), a], -1)) - phi(y)) ** 2).sum(-1)


def ride(nets, x, a, y):
    phi = layers(nets["encoder"])
    return np.linalg.norm(phi(y) - phi(x), axis=-1) / np.sqrt(visits())


def noveld(nets, x, a, y):
    return np.maximum(rnd_error(nets, y) - 0.5 * rnd_error(nets, x), 0) * (visits() == 1)


def e3b(nets, x, a, y):
    phi, F = layers(nets["encoder"])(y), np.zeros((T, B))
    for k in range(B):
        C = 0.1 * np.eye(phi.shape[-1])
        for t in range(T):
            F[t, k] = phi[t, k] @ np.linalg.inv(C) @ phi[t, k]
            C = C + np.outer(phi[t, k], phi[t, k])
            C = 0.1 * np.eye(phi.shape[-1]) if ROLLOUT["done"][t, k] else C
    return F


def disagreement(nets, x, a, y):
    inputs = np.concatenate([layers(nets["target"])(x), a], -1)
    return np.var([layers(model)(inputs) for model in nets["models"]], axis=0).mean(-1)


FORMULAS = {"RND": rnd, "ICM": icm, "RIDE": ride, "NovelD": noveld, "E3B": e3b, "Disagreement": disagreement}
INPUTS = ROLLOUT["obs"].astype(float), onehot(ROLLOUT["action"]), ROLLOUT["next_obs"].astype(float)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_formula(name):
    bonus = NETWORKS[name](**STILL, alpha=0.5)
    paid = play(bonus, ROLLOUT)
    assert paid.std() > 0
    np.testing.assert_allclose(2 * paid, FORMULAS[name](bonus.networks, *INPUTS), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_statistics_are_those_of_the_steps_before(name):
    """Whitened by the mean and deviation of all earlier s′, divided by the root mean square of all earlier F.

    Four calls are paid 0, and F of the first two is not measured.
    """
    bonus = NETWORKS[name](learn_every=0, warmup=12, clip=0.4, alpha=1.0)
    paid = play(bonus, ROLLOUT)
    x, a, y = INPUTS
    whitened = []
    for seen in (x, y):
        rows = [seen[0]]
        for t in range(1, T):
            earlier = y[:t].reshape(-1, y.shape[-1])
            rows.append(np.clip((seen[t] - earlier.mean(0)) / np.sqrt(earlier.var(0) + 1e-8), -5, 5))
        whitened.append(np.array(rows))
    F = FORMULAS[name](bonus.networks, whitened[0], a, whitened[1])
    scaled = [F[t] / np.sqrt((F[2:t] ** 2).mean()) if t >= 4 else np.zeros(B) for t in range(T)]
    expected = np.minimum(scaled, 0.4)
    assert (expected == 0.4).any()
    np.testing.assert_allclose(paid, expected, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_it_learns_from_the_transitions_of_its_calls_after_they_are_paid(name):
    """Three calls pay by the first weights; then one step of Adam on their nine transitions gives the next."""
    bonus, plain = (
        NETWORKS[name](share=1.0, batch_size=9, whiten=False, **options) for options in ({}, {"learn_every": 0})
    )
    for t in range(3):
        step = ROLLOUT["obs"][t], ROLLOUT["action"][t], ROLLOUT["next_obs"][t]
        bonus(*step, {})
        plain(*step, {})
        same = [
            torch.equal(*pair) for pair in zip(bonus.networks.parameters(), plain.networks.parameters(), strict=True)
        ]
        assert all(same) == (t < 2)
    plain.learn(tuple(ROLLOUT[key][:3].reshape(9, *ROLLOUT[key].shape[2:]) for key in ("obs", "action", "next_obs")))
    for one, other in zip(bonus.networks.parameters(), plain.networks.parameters(), strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_learning_lowers_the_loss_and_leaves_targets_alone(name):
    bonus = NETWORKS[name](learn_every=0)
    batch = tuple(ROLLOUT[key].reshape(T * B, *ROLLOUT[key].shape[2:]) for key in ("obs", "action", "next_obs"))
    first = bonus.learn(batch)
    before = {key: weight.clone() for key, weight in bonus.networks.state_dict().items()}
    for _ in range(100):
        last = bonus.learn(batch)
    assert last < first
    for key, weight in bonus.networks.state_dict().items():
        assert torch.equal(weight, before[key]) == key.startswith("target"), key


@pytest.mark.parametrize("name", NETWORKS)
def test_a_seed_repeats_everything_and_leaves_torch_alone(name):
    torch.manual_seed(3)
    state = torch.get_rng_state()
    first, second, other = (play(NETWORKS[name](seed=seed), ROLLOUT) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_features_of_e3b_and_icm_take_continuous_actions():
    import gymnasium as gym

    from payback.bonuses.torch import E3B, ICM, RIDE, Disagreement

    action, obs = np.random.default_rng(0).normal(size=(4, 2)), np.eye(4, dtype=np.float32)
    for make in (E3B, ICM, RIDE, Disagreement):
        bonus = make(gym.spaces.Box(-1, 1, (2,)), learn_every=1)
        for _ in range(3):
            assert bonus(obs, action, obs[::-1].copy(), {}).shape == (4,)


def test_several_binary_actions_are_flat_numbers():
    """`MultiBinary.n` is a whole number, as `Discrete.n` is."""
    import gymnasium as gym

    from payback.bonuses.torch import E3B, ICM, RIDE, Disagreement

    action, obs = np.array([[0, 1, 1]] * 4, dtype=np.int8), np.eye(4, dtype=np.float32)
    read = ActionEncoder("E3B", gym.spaces.MultiBinary(3))
    assert not read.discrete
    assert read(action, 4).tolist() == action.tolist()
    for make in (E3B, ICM, RIDE, Disagreement):
        bonus = make(gym.spaces.MultiBinary(3), learn_every=1)
        for _ in range(3):
            assert bonus(obs, action, obs[::-1].copy(), {}).shape == (4,)


@pytest.mark.parametrize("name", NETWORKS)
def test_booleans_are_read_as_zeros_and_ones(name):
    """As MinAtar shows its channels."""
    flags = {key: ROLLOUT[key].astype(bool) for key in ("obs", "next_obs")}
    expected = play(NETWORKS[name](), ROLLOUT)
    np.testing.assert_allclose(play(NETWORKS[name](), {**ROLLOUT, **flags}), expected, rtol=1e-6)
    for obs in (np.eye(4, dtype=bool).reshape(4, 2, 2), {"image": np.ones((4, 7, 7, 3), dtype=bool)}):
        assert NETWORKS[name]()(obs, np.zeros(4, dtype=int), obs, {}).shape == (4,)


def test_images_have_their_channels_first_and_dicts_are_flat():
    def shape_of(obs):
        return tuple(ObservationEncoder("RND", None, None, torch.device("cpu"))(obs).shape)

    assert shape_of(np.zeros((2, 7, 7, 3), np.uint8)) == (2, 3, 7, 7)
    assert shape_of({"b": np.zeros((2, 3)), "a": np.zeros((2, 2, 2))}) == (2, 7)


@pytest.mark.parametrize("name", NETWORKS)
def test_images_and_dicts(name):
    rng = np.random.default_rng(0)
    for obs in (
        rng.integers(10, size=(4, 7, 7, 3)).astype(np.uint8),
        rng.integers(255, size=(4, 3, 12, 12)).astype(np.uint8),
        rng.normal(size=(4, 9, 9)),
        {"image": rng.integers(10, size=(4, 5, 5, 3)).astype(np.uint8), "direction": np.arange(4)},
    ):
        bonus = NETWORKS[name](learn_every=2)
        for _ in range(5):
            F = bonus(obs, np.zeros(4, dtype=int), obs, {})
        assert F.shape == (4,)
        assert F.dtype == np.float64
        assert np.isfinite(F).all()
