"""The Gymnasium wrappers around vectors: all autoreset modes, workers, native vectors, and dictionary observations."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import payback
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .gymnasium_vectors import GAMMA, MODES, RAW, B, T, drive, wrapped_vector

pytestmark = [
    pytest.mark.gymnasium,
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
]


def own(step, key):
    """A step's info under `key`, whether it stands beside or, under SAME_STEP, in the ended episode's info."""
    info = step["info"]
    here = info.get(f"_{key}", np.ones(B, dtype=bool))
    values = np.where(here, info.get(key, np.zeros(B)), 0.0)
    if "final_info" in info and key in info["final_info"]:
        values = np.where(info["_final_info"], info["final_info"][key], values)
    return values


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize("options", [{}, {"observe_debt": True}, {"on_truncation": "carry", "observe_debt": True}])
def test_a_vector_of_wrapped_is_a_wrapped_vector(walk, distance, mode, name, options):
    if options.get("on_truncation") == "carry" and name == "pbim":
        pytest.skip("refused, see test_carry_is_refused_where_it_is_wrong")
    alone = SyncVectorEnv([lambda: ShapeReward(walk(), distance, RAW[name], **options)] * B, autoreset_mode=mode)
    together = wrapped_vector(walk, mode, distance, RAW[name], **options)
    assert together.observation_space == alone.observation_space
    ends = 0
    for a, b in zip(drive(alone, mode), drive(together, mode), strict=True):
        for key in ("obs", "next_obs", "reward"):
            np.testing.assert_allclose(a[key], b[key], rtol=1e-5, atol=1e-6, err_msg=key)
        for key in ("terminated", "truncated"):
            np.testing.assert_array_equal(a[key], b[key], err_msg=key)
        for key in ("extrinsic", "intrinsic", "shaped", "owed", "truncated"):
            np.testing.assert_allclose(own(a, key), own(b, key), atol=1e-9, err_msg=key)
        ended = b["terminated"] | b["truncated"]
        ends += ended.sum()
        if mode is AutoresetMode.SAME_STEP:
            for k in np.flatnonzero(ended):
                np.testing.assert_allclose(a["info"]["final_obs"][k], b["info"]["final_obs"][k], rtol=1e-5)
    assert ends > 12


@pytest.mark.parametrize("mode", MODES)
def test_the_intrinsic_reward_sees_true_transitions_and_the_mean_counts_them(walk, mode):
    seen = []

    def record(obs, action, next_obs, info):
        seen.append((obs.copy(), next_obs.copy(), info["valid"].copy()))
        return np.where(info["valid"], 1.0, np.nan)

    # copy=False: the environment writes every observation into the same memory.
    envs = SyncVectorEnv([walk] * B, autoreset_mode=mode, copy=False)
    envs = ShapeVectorReward(envs, record, payback.grm(GAMMA, 2))
    transitions = 0
    for step in drive(envs, mode):
        obs, next_obs, valid = seen[-1]
        np.testing.assert_array_equal(valid, ~step["reset_row"])
        np.testing.assert_allclose(step["info"]["extrinsic"][valid], next_obs[valid, 0])
        assert np.all(step["reward"][~valid] == 0)
        assert np.all(step["info"]["intrinsic"][~valid] == 0)
        if len(seen) > 1 and mode is AutoresetMode.NEXT_STEP:
            np.testing.assert_array_equal(seen[-2][1], obs)
        transitions += valid.sum()
    center_state = envs.shaping_state.loans[0]
    assert int(center_state.count) == transitions
    assert (transitions < B * T) == (mode is AutoresetMode.NEXT_STEP)
    assert float(center_state.mean) == pytest.approx(1)


def test_asynchronous_and_native_vectors(walk, distance):
    mode = AutoresetMode.SAME_STEP
    # No fork, because JAX, which another test of this process may have started, warns of it.
    workers = AsyncVectorEnv([walk] * B, autoreset_mode=mode, context="forkserver")
    together = ShapeVectorReward(workers, distance, RAW["grm-3"])
    for a, b in zip(drive(together, mode, 40), drive(wrapped_vector(walk, mode, distance, RAW["grm-3"]), mode, 40),
                    strict=True):  # fmt: skip
        np.testing.assert_allclose(a["reward"], b["reward"])
    together.close()
    native = gym.make_vec("CartPole-v1", B, vectorization_mode="vector_entry_point")
    native = ShapeVectorReward(native, lambda obs, action, next_obs, info: np.abs(next_obs[:, 0]), RAW["grm-3"])
    assert sum(step["terminated"].sum() for step in drive(native, AutoresetMode.NEXT_STEP)) > 3


@pytest.mark.parametrize("mode", MODES)
def test_dictionary_observations(walk, mode):
    def nested():
        env = gym.wrappers.TransformObservation(
            walk(), lambda o: {"place": o, "sign": int(o[0] > 0)},
            gym.spaces.Dict({"place": walk().observation_space, "sign": gym.spaces.Discrete(2)}))  # fmt: skip
        return env

    def moved(obs, action, next_obs, info):
        return np.abs(next_obs["place"] - obs["place"]).sum(axis=-1) + next_obs["sign"]

    alone = SyncVectorEnv(
        [lambda: ShapeReward(nested(), moved, RAW["grm-3"], observe_debt=True)] * B, autoreset_mode=mode
    )
    together = wrapped_vector(nested, mode, moved, RAW["grm-3"], observe_debt=True)
    assert set(together.single_observation_space.spaces) == {"place", "sign", "debt"}
    for a, b in zip(drive(alone, mode), drive(together, mode), strict=True):
        np.testing.assert_allclose(a["reward"], b["reward"])
        for key in a["next_obs"]:
            np.testing.assert_allclose(a["next_obs"][key], b["next_obs"][key], rtol=1e-5, err_msg=key)
        assert together.observation_space.contains(b["next_obs"])
