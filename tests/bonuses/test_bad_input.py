"""Wrong input gets one sentence that names what was found and what is taken."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback.bonuses import Count, EpisodicCount, Recency, SimHash
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD

ROW = np.zeros((2, 3))
ACTION = np.zeros(2, dtype=int)


def test_a_key_that_cannot_be_hashed():
    for make in (Count, EpisodicCount, Recency, NovelD, lambda key: RIDE(2, key=key)):
        with pytest.raises(TypeError, match=r"returned a list for environment 0, which cannot.*return a number"):
            make(key=lambda obs: obs.tolist())(ROW, ACTION, ROW, {})


def test_observations_that_are_no_arrays():
    for make in (Count, EpisodicCount, SimHash):
        for obs in (None, 3.0, [object(), object()], {"graph": np.array([None, None])}):
            with pytest.raises(TypeError, match=r"cannot read the observation.*a batch of arrays with one row"):
                make()(obs, ACTION, obs, {})


@pytest.mark.parametrize("make", [Count, EpisodicCount, SimHash, Recency, RND])
def test_observations_that_jax_traces(make):
    bonus = make()
    with pytest.raises(TypeError, match=r"observation, because JAX traces it: use a bonus of payback.bonuses.jax"):
        jax.jit(lambda obs: bonus(obs, ACTION, obs, {}))(jnp.zeros((2, 3)))


def test_simhash_takes_numbers():
    obs = {"image": np.zeros((2, 4)), "mission": ("go", "stay")}
    with pytest.raises(TypeError, match=r"cannot read the observation\['mission'\] of type <U4.*pass view="):
        SimHash()(obs, ACTION, obs, {})
    assert SimHash(view=lambda obs: obs["image"])(obs, ACTION, obs, {}).shape == (2,)


def test_simhash_of_another_size():
    bonus = SimHash()
    bonus(ROW, ACTION, ROW, {})
    with pytest.raises(ValueError, match="projects 3 numbers per observation, got 4"):
        bonus(np.zeros((2, 4)), ACTION, np.zeros((2, 4)), {})
    with pytest.raises(ValueError, match="bits must be a whole number"):
        SimHash(bits=0)


def test_other_numbers_of_environments():
    bonus = EpisodicCount()
    bonus(ROW, ACTION, ROW, {})
    with pytest.raises(ValueError, match="episodes of 2 environments and was given 4; call reset"):
        bonus(np.zeros((4, 3)), np.zeros(4, dtype=int), np.zeros((4, 3)), {})
    bonus.reset(np.ones(4, dtype=bool))
    assert bonus(np.zeros((4, 3)), np.zeros(4, dtype=int), np.ones((4, 3)), {}).shape == (4,)
    with pytest.raises(ValueError, match="episodes of 4 environments and was given 2"):
        bonus.reset(np.array([True, False]))


def test_a_mask_that_is_no_mask():
    for where in ([0, 1], True, np.ones((2, 2), dtype=bool)):
        with pytest.raises(ValueError, match=r"takes a \(B,\) mask of booleans"):
            EpisodicCount().reset(where)


def test_parts_with_other_numbers_of_rows():
    obs = {"a": np.zeros((2, 3)), "b": np.zeros((3, 3))}
    with pytest.raises(ValueError, match=r"one row per environment, got \[2, 3\] rows"):
        Count()(obs, ACTION, obs, {})


def test_valid_of_another_length():
    with pytest.raises(ValueError, match=r'info\["valid"\] has shape \(3,\), not \(2,\)'):
        Count()(ROW, ACTION, ROW, {"valid": np.ones(3, dtype=bool)})


# ------------------------------------------------------------------ networks


def rnd(obs, **options):
    return RND(**options)(obs, None, obs, {})


def test_networks_take_vectors_images_and_dicts_of_numbers():
    with pytest.raises(TypeError, match=r"an observation of one number \(int64\).*view=lambda obs: np.eye"):
        rnd(np.array([0, 1]))
    with pytest.raises(TypeError, match=r"observations of shape \(2, 2, 2, 2\).*pass view="):
        rnd(np.zeros((1, 2, 2, 2, 2)))
    with pytest.raises(TypeError, match=r"cannot read the observation\['mission'\].*pass view="):
        rnd({"image": np.zeros((2, 4)), "mission": ("go", "stay")})
    with pytest.raises(TypeError, match="cannot read the observation, a list"):
        rnd([object(), object()])


def test_images_in_the_wrong_layout():
    image = np.zeros((2, 7, 7, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match=r"layout='CHW' was asked for, but images of shape \(7, 7, 3\) look like HWC"):
        rnd(image, layout="CHW")
    with pytest.raises(ValueError, match=r"images of shape \(3, 3, 3\) do not show which axis has the channels"):
        rnd(np.zeros((2, 3, 3, 3)))
    assert rnd(np.zeros((2, 3, 3, 3)), layout="CHW").shape == (2,)
    with pytest.raises(ValueError, match=r'layout is "HWC" \(channels last\), "CHW"'):
        RND(layout="NHWC")


def test_another_shape_than_before():
    bonus = RND()
    bonus(ROW, None, ROW, {})
    with pytest.raises(ValueError, match=r"made for observations of shape \(3,\), got \(4,\)"):
        bonus(None, None, np.zeros((2, 4)), {})


def test_a_device_that_is_not_there():
    for device in ("cuda:7", "abacus"):
        with pytest.raises(ValueError, match=f"RND: the device '{device}' is not there; this Torch has cpu"):
            RND(device=device)


def test_actions_that_do_not_fit():
    bonus = ICM(2)
    for action in ([0, 2], [-1, 0], [0.5, 1.0]):
        with pytest.raises(ValueError, match="actions must be whole numbers from 0 to 1, got"):
            bonus(ROW, np.array(action), ROW, {})
    with pytest.raises(
        TypeError, match="the number of discrete actions, or a Discrete, Box or MultiBinary space, got str"
    ):
        ICM("left")


@pytest.mark.parametrize("actions", [0, -1, gym.spaces.Box(-1, 1, (0,))])
def test_spaces_without_an_action(actions):
    with pytest.raises(ValueError, match="RIDE: actions must be at least 1, got "):
        RIDE(actions)


NEEDS_ACTIONS = {
    **{make.__name__: lambda make=make: make(3) for make in (ICM, RIDE, E3B, Disagreement)},
    "Recency": lambda: Recency(),
}


@pytest.mark.parametrize("name", NEEDS_ACTIONS)
def test_one_action_per_environment(name):
    for action, got in ((None, "None"), (ACTION[:1], "1 of them"), (np.zeros(4, dtype=int), "4 of them")):
        with pytest.raises(ValueError, match=f"^{name} needs one action for each of 2 environments, got {got}$"):
            NEEDS_ACTIONS[name]()(ROW, action, ROW, {})


@pytest.mark.parametrize(
    ("actions", "action", "sentence"),
    [
        (2, np.zeros((2, 2), dtype=int), "one action for each of 2 environments, got 4 of them"),
        (2, np.array(0), "one action for each of 2 environments, got 1 of them"),
        (gym.spaces.Box(-1, 1, (3,)), np.zeros((2, 2)), r"actions of 3 numbers each, got an array of shape \(2, 2\)"),
        (gym.spaces.Box(-1, 1, (3,)), np.zeros(2), r"actions of 3 numbers each, got an array of shape \(2,\)"),
        (gym.spaces.MultiBinary(3), np.zeros((1, 3)), "one action for each of 2 environments, got 1 of them"),
        (gym.spaces.Box(-1, 1, (1,)), np.array(0.5), "one action for each of 2 environments, got 1 of them"),
    ],
)
def test_actions_of_another_shape(actions, action, sentence):
    for make in (ICM, RIDE):
        with pytest.raises(ValueError, match=f"{make.__name__} needs {sentence}"):
            make(actions)(ROW, action, ROW, {})


def test_observations_that_are_not_finite():
    for bonus in (RND(), E3B(2)):
        bonus(ROW, ACTION, ROW, {})
        bad = ROW.copy()
        bad[1, 0] = np.nan
        with pytest.raises(ValueError, match="observation or action of environment 1 is not finite"):
            bonus(ROW, ACTION, bad, {})
        bonus(ROW, ACTION, bad, {"valid": np.array([True, False])})
        assert np.isfinite(bonus(ROW, ACTION, ROW, {})).all()


def test_weights_that_have_diverged():
    bonus, rows = ICM(2, rate=1e30, learn_every=1, warmup=0), np.random.default_rng(0).normal(size=(2, 3))
    bonus(rows, ACTION, rows, {})
    with pytest.raises(ValueError, match="the bonus is not finite, because the weights have diverged; lower the rate"):
        bonus(rows, ACTION, rows, {})


def test_sizes_that_make_no_sense():
    with pytest.raises(ValueError, match=r"share must lie in \(0, 1\], got 0"):
        RND(share=0)
    with pytest.raises(ValueError, match="learn_every must be a whole number of steps, at least 0, got -1"):
        RND(learn_every=-1)
    with pytest.raises(ValueError, match="ridge must be larger than 0"):
        E3B(2, ridge=0)
    bonus = E3B(2)
    bonus(ROW, ACTION, ROW, {})
    with pytest.raises(ValueError, match="episodes of 2 environments and was given 1"):
        bonus(ROW[:1], ACTION[:1], ROW[:1], {})


@pytest.mark.parametrize("make", [Count, EpisodicCount, SimHash, Recency, RND])
@pytest.mark.parametrize("alpha", [np.nan, np.inf])
def test_alpha_is_finite(make, alpha):
    with pytest.raises(ValueError, match="alpha must be a finite number"):
        make(alpha)
