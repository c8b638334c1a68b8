"""The Gymnasium wrappers: all autoreset modes, both treatments of truncation, and the law in what they pay."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import payback
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward
from payback.integrations.ledger import Ledger, ShapingWarning

from .corridor import Corridor

GAMMA, B, T = 0.9, 3, 80
MODES = list(AutoresetMode)
RAW = {
    "pbim": payback.pbim(GAMMA, center=False),
    "grm-1": payback.grm(GAMMA, 1, center=False),
    "grm-3": payback.grm(GAMMA, 3, center=False),
    "evenly": payback.match_evenly(GAMMA, 4),
    "geometric": payback.match_geometric(GAMMA, 0.5),
    "scaled": payback.chain(payback.clip(0, 2), payback.match_after(GAMMA, 2), payback.scale(0.1)),
}
CARRIED = [name for name in RAW if name != "pbim"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.integrations.ledger.ShapingWarning"),
]


def drive(envs, mode, steps=T, seed=3):
    """Yield each step of a random policy; under DISABLED ended environments are reset by mask."""
    obs, _ = envs.reset(seed=seed)
    chance = np.random.default_rng(seed)
    begun = np.zeros(envs.num_envs, dtype=bool)
    for _ in range(steps):
        actions = chance.integers(2, size=envs.num_envs)
        next_obs, reward, terminated, truncated, info = envs.step(actions)
        step = {"obs": obs, "next_obs": next_obs, "reward": reward, "info": info, "reset_row": begun}
        yield {**step, "terminated": terminated, "truncated": truncated}
        ended = terminated | truncated
        begun = ended if mode is AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        if mode is AutoresetMode.DISABLED and ended.any():
            next_obs, _ = envs.reset(options={"reset_mask": ended})
        obs = next_obs


def wrapped_vector(walk, mode, *shaping, **options):
    return ShapeVectorReward(SyncVectorEnv([walk] * B, autoreset_mode=mode), *shaping, **options)


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


CASES = [(name, "settle", "distance") for name in RAW] + [(name, "carry", "novelty") for name in CARRIED]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "on_truncation", "source"), CASES)
def test_every_episode_keeps_the_law_and_the_drawer(walk, distance, mode, name, on_truncation, source):
    """Σγ^t F'_t = 0 at an end that settles, γ^N·debt where the debt is carried; F' as the naive (drawer) has it."""
    intrinsic = distance if source == "distance" else source
    envs = wrapped_vector(walk, mode, intrinsic, RAW[name], on_truncation=on_truncation)
    episodes, lent, paid = [], [[] for _ in range(B)], [[] for _ in range(B)]
    for step in drive(envs, mode):
        for k in np.flatnonzero(~step["reset_row"]):
            lent[k].append(step["info"]["intrinsic"][k])
            paid[k].append(step["info"]["shaped"][k])
            np.testing.assert_allclose(step["reward"][k], step["info"]["extrinsic"][k] + paid[k][-1])
            if step["terminated"][k] or step["truncated"][k]:
                episodes.append((lent[k], paid[k], step["info"]["owed"][k], step["terminated"][k]))
                lent[k], paid[k] = [], []
    for F, shaped, debt, terminated in episodes:
        N = len(shaped)
        assert GAMMA ** np.arange(N) @ shaped == pytest.approx(GAMMA**N * debt, abs=1e-9)
        assert bool(debt) != bool(terminated)
        if name in ("grm-1", "grm-3") and terminated:
            D = int(name[-1])
            naive = payback.match_episode(F, lambda t, i, N: float(t == min(i + D, N - 1)), GAMMA)  # noqa: B023
            np.testing.assert_allclose(shaped, naive, atol=1e-9)
    assert {bool(end) for *_, end in episodes} == ({True} if on_truncation == "settle" else {True, False})


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
    center_state = envs.ledger.state[0]
    assert int(center_state.count) == transitions
    assert (transitions < B * T) == (mode is AutoresetMode.NEXT_STEP)
    assert float(center_state.mean) == pytest.approx(1)


def test_settle_reports_the_time_limit_as_terminal_and_says_so_once(walk, distance):
    envs = wrapped_vector(lambda: walk(0.0), AutoresetMode.SAME_STEP, distance, RAW["grm-3"], learner_gamma=GAMMA)
    with pytest.warns(ShapingWarning, match="time limit is now part of the task") as said:
        steps = list(drive(envs, AutoresetMode.SAME_STEP, steps=30))
    for t, step in enumerate(steps, start=1):
        last = t % 7 == 0
        assert step["terminated"].tolist() == [last] * B
        assert step["info"]["truncated"].tolist() == [last] * B
        assert not step["truncated"].any()
        assert np.all((step["info"]["owed"] == 0) == last)
    assert len([w for w in said if w.category is ShapingWarning]) == 1


def test_carry_is_refused_where_it_is_wrong(walk, distance):
    fast = payback.match_geometric(GAMMA, 0.95)
    for match in (RAW["pbim"], payback.pbim(GAMMA), payback.match_when(GAMMA), fast):
        with pytest.raises(ValueError, match="carry' is refused"):
            ShapeReward(walk(), distance, match, on_truncation="carry")
    with pytest.raises(ValueError, match="'settle' or 'carry', got 'drop'"):
        ShapeReward(walk(), distance, RAW["grm-1"], on_truncation="drop")


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.integrations.ledger.ShapingWarning")
def test_resets_in_mid_episode_drop_the_debt_and_count_it(walk, distance):
    envs = wrapped_vector(lambda: walk(0.0), AutoresetMode.DISABLED, distance, RAW["pbim"])
    envs.reset(seed=0)
    for _ in range(3):
        _, _, _, _, info = envs.step(np.ones(B, dtype=int))
    owed, mask = info["owed"], np.array([False, True, False])
    envs.reset(options={"reset_mask": mask})
    assert envs.ledger.drops == 1
    np.testing.assert_allclose(envs.ledger.dropped, np.where(mask, owed, 0))
    np.testing.assert_allclose(envs.ledger.owed, np.where(mask, 0, owed))
    envs.reset()
    assert envs.ledger.drops == 3
    np.testing.assert_allclose(envs.ledger.dropped, owed)
    envs.reset()
    assert envs.ledger.drops == 3


def test_match_when_repays_on_events(walk, distance):
    def event(obs, action, next_obs, info):
        return np.asarray(action) == 1

    env = ShapeReward(walk(0.0), distance, payback.match_when(GAMMA), event=event)
    env.reset(seed=0)
    first = env.step(0)[4]
    assert first["shaped"] == pytest.approx(first["intrinsic"])
    second = env.step(1)[4]
    assert second["shaped"] == pytest.approx(second["intrinsic"] - first["intrinsic"] / GAMMA)
    assert second["owed"] == pytest.approx(second["intrinsic"] / GAMMA)


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


def test_the_state_is_saved_and_loaded(walk, distance, tmp_path):
    envs = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, payback.grm(GAMMA, 3))
    list(drive(envs, AutoresetMode.SAME_STEP, 20))
    envs.ledger.save(tmp_path / "shaping.npz")
    other = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, payback.grm(GAMMA, 3))
    other.ledger.load(tmp_path / "shaping.npz")
    np.testing.assert_array_equal(other.ledger.owed, envs.ledger.owed)
    assert other.ledger.state[0] == envs.ledger.state[0]
    with pytest.warns(ShapingWarning, match=r"right only if the environments, too, were put back"):
        other.ledger.step(np.ones(3), None, None)
    for _ in range(2):
        other.ledger.step(np.ones(3), None, None)
    other.ledger.step(np.ones(3), np.ones(3, dtype=bool), None)
    other.ledger.watch.sum_up()
    assert (other.ledger.watch.finished, other.ledger.watch.broken) == (3, 0), "judged from the debts that were loaded"
    one = ShapeReward(walk(), distance, payback.grm(GAMMA, 3))
    one.ledger.load(tmp_path / "shaping.npz")
    assert one.ledger.state[0] == envs.ledger.state[0], "another number of environments keeps F̄"
    assert one.ledger.owed.tolist() == [0]
    later = ShapeReward(walk(), distance, payback.grm(GAMMA, 4))
    with pytest.raises(ValueError, match="holds the state of another transform"):
        later.ledger.load(tmp_path / "shaping.npz")


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32"])
def test_what_is_paid_is_the_sum_whatever_the_rewards_dtype(dtype):
    class Cast(gym.vector.VectorWrapper):
        def step(self, actions):
            obs, reward, *rest = self.env.step(actions)
            return obs, reward.astype(dtype), *rest

    one = gym.wrappers.TransformReward(Corridor(4), lambda reward: np.dtype(dtype).type(reward))
    single = ShapeReward(one, lambda *t: np.full(1, 0.3), payback.match_at_end(GAMMA))
    vector = SyncVectorEnv([lambda: Corridor(4)] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    vector = ShapeVectorReward(Cast(vector), lambda *t: np.full(2, 0.3), payback.match_at_end(GAMMA))
    for env, actions in ((single, 1), (vector, np.ones(2, int))):
        env.reset()
        paid = np.array([env.step(actions)[1] for _ in range(4)])
        np.testing.assert_allclose(paid[:3], 1.3)
        np.testing.assert_allclose(GAMMA ** np.arange(4) @ (paid - 1), 0, atol=1e-12)


@pytest.mark.parametrize("num_envs", [3, 2], ids=["as many environments", "fewer environments"])
def test_a_state_of_another_horizon_is_not_loaded(num_envs, tmp_path):
    """Its mean would stay the cumulative one for ever, because the state says how fast the old fades."""
    saved = Ledger(payback.grm(GAMMA, 2), 3)
    saved.step(np.ones(3), None, None)
    saved.save(tmp_path / "shaping.npz")
    ledger = Ledger(payback.grm(GAMMA, 2, center=payback.center(20)), num_envs)
    before = ledger.state
    with pytest.raises(ValueError, match="holds the state of another transform: its mean has another horizon"):
        ledger.load(tmp_path / "shaping.npz")
    assert ledger.state is before


def test_a_loaded_state_is_read_by_the_transform(tmp_path):
    """The file is compared with the state that the ledger holds, which may have been put there by hand."""
    stranger = payback.match_at_end(GAMMA).init(np.zeros(3))
    payback.save_state(tmp_path / "shaping.npz", stranger)
    ledger = Ledger(payback.match_after(GAMMA, 2), 3)
    ledger.state = stranger
    with pytest.raises(TypeError, match="match_after was given a state of type AtEndState, not its own AgesState"):
        ledger.load(tmp_path / "shaping.npz")


class TestBadInput:
    def step_twice(self, walk, intrinsic, mode=AutoresetMode.SAME_STEP):
        envs = wrapped_vector(lambda: walk(0.0), mode, intrinsic, RAW["grm-1"])
        envs.reset(seed=0)
        for _ in range(2):
            envs.step(np.zeros(B, dtype=int))

    def test_wrong_shape(self, walk):
        with pytest.raises(ValueError, match=r"step 0 has shape \(3, 1\), not \(3,\)"):
            self.step_twice(walk, lambda *transition: np.ones((B, 1)))

    def test_not_numbers(self, walk):
        with pytest.raises(TypeError, match="step 0 is a str, not an array of 3 numbers"):
            self.step_twice(walk, lambda *transition: "much")

    def test_nan(self, walk):
        answers = iter([np.zeros(B), np.array([0, 0, np.nan])])
        with pytest.raises(ValueError, match="environment 2 at step 1 is nan"):
            self.step_twice(walk, lambda *transition: next(answers))

    def test_raises(self, walk):
        with pytest.raises(RuntimeError, match=r"raised ZeroDivisionError at step 0 \(environments 0 to 2\)"):
            self.step_twice(walk, lambda *transition: 1 / 0)

    def test_missing_info_key(self, walk):
        with pytest.raises(KeyError, match="no 'curiosity' for environment 0 at step 0"):
            self.step_twice(walk, "curiosity")

    def test_no_vector_metadata(self, walk, distance):
        envs = SyncVectorEnv([walk] * B)
        envs.metadata = {}
        with pytest.raises(ValueError, match=r"does not say how it resets: metadata\['autoreset_mode'\] is None"):
            ShapeVectorReward(envs, distance, RAW["grm-1"])

    def test_no_reset(self, walk, distance):
        envs = wrapped_vector(walk, AutoresetMode.SAME_STEP, distance, RAW["grm-1"])
        envs.env.reset(seed=0)
        with pytest.raises(RuntimeError, match="call reset before the first step"):
            envs.step(np.zeros(B, dtype=int))

    def test_space_that_cannot_hold_the_debt(self):
        with pytest.raises(ValueError, match=r"Discrete\(16\) cannot hold the debt"):
            ShapeReward(gym.make("FrozenLake-v1"), "novelty", RAW["grm-1"], observe_debt=True)

    def test_space_that_has_a_debt_already(self, walk):
        env = gym.wrappers.TransformObservation(
            walk(), lambda o: {"debt": o}, gym.spaces.Dict({"debt": walk().observation_space}))  # fmt: skip
        with pytest.raises(ValueError, match="already has a 'debt'"):
            ShapeReward(env, "novelty", RAW["grm-1"], observe_debt=True)

    def test_no_match_is_said(self, walk):
        with pytest.warns(ShapingWarning, match="no match in this transform"):
            env = ShapeReward(walk(0.0), "novelty", payback.scale(0.5))
        env.reset(seed=0)
        _, reward, _, _, info = env.step(0)
        assert reward == pytest.approx(info["extrinsic"] + 0.5 * info["novelty"])
        with pytest.raises(TypeError, match="must be a RewardTransform"):
            ShapeReward(walk(), "novelty", GAMMA)
