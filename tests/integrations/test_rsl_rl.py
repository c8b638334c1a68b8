"""rsl_rl: preferences are kept at time-outs, which its own order of bonus and bootstrap turns around.

Runs in the hosts' environment (make test-hosts).
"""

import importlib.util
import re
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("rsl_rl.runners", reason="make test-hosts", exc_type=ImportError)
    from rsl_rl.runners import OnPolicyRunner

import payback  # noqa: E402
from payback.auditing.log_file import audit_file  # noqa: E402
from payback.bonuses import Count, EpisodicCount, Recency, SimHash  # noqa: E402
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD  # noqa: E402
from payback.integrations.ledger import Ledger, ShapingWarning  # noqa: E402
from payback.integrations.rsl_rl import ShapedPPO  # noqa: E402

from .own_match import forgets_the_end  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.integrations.ledger.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
spec = importlib.util.spec_from_file_location("rsl_rl_ppo", Path(__file__).parents[2] / "examples" / "rsl_rl_ppo.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
GAMMA, LIMIT, B = example.GAMMA, example.LIMIT, 2


class Table(torch.nn.Module):
    """A critic that is a table over lane and time: one that can be exact."""

    def __init__(self):
        super().__init__()
        self.values = torch.zeros(2 * LIMIT)

    def forward(self, obs):
        return obs["policy"] @ self.values[:, None]

    def get_hidden_state(self):
        return None

    def reset(self, dones=None, hidden_state=None):
        pass


def runner(env, algorithm, steps=2 * LIMIT):
    with redirect_stdout(StringIO()):
        return OnPolicyRunner(env, {**example.config(algorithm), "num_steps_per_env": steps})


def start_value(env, algorithm, right, sweeps=400):
    """The value of an episode's start under the policy that always goes right, or always left, at convergence.

    Whole episodes are played through `process_env_step`, their λ = 1 returns taken from `compute_returns` and written
    into the table, until it stands still.
    """
    alg = runner(env, {**algorithm, "lam": 1.0}, LIMIT).alg
    alg.critic = table = Table()
    seen = torch.zeros(2 * LIMIT)
    with torch.inference_mode():
        for _ in range(sweeps):
            obs, rows = env.get_observations(), []
            for _ in range(LIMIT):
                alg.act(obs)
                rows.append(obs["policy"][0].argmax())
                obs, reward, dones, extras = env.step(torch.full((B, 1), 1.0 if right else -1.0))
                alg.process_env_step(obs, reward, dones, extras)
            alg.compute_returns(obs)
            for row, value in zip(rows, alg.storage.returns[:, 0, 0], strict=True):
                table.values[row] = value
            alg.storage.clear()
            if torch.allclose(seen, table.values, atol=1e-5):
                break
            seen = table.values.clone()
    return float(table.values[0])


def shaped(transform, on_truncation="settle"):
    intrinsic = example.novelty
    return {"class_name": ShapedPPO, "transform": transform, "intrinsic": intrinsic, "on_truncation": on_truncation}


MATCHES = {"pbim": payback.pbim(GAMMA, center=False), "grm-1": payback.grm(GAMMA, 1, center=False)}


@pytest.mark.parametrize("name", MATCHES)
def test_the_naive_order_turns_the_preference_around(name):
    """Settled in the environment and then bootstrapped, the better lane looks worse: what ShapedPPO is there for."""
    match = MATCHES[name]
    right = start_value(example.Lanes(B, match), {"class_name": "PPO"}, True)
    left = start_value(example.Lanes(B, match), {"class_name": "PPO"}, False)
    assert right < left - 0.5


@pytest.mark.parametrize("name", MATCHES)
def test_settled_time_outs_keep_every_value(name):
    """The time limit is part of the task: Σ γ^t 0.05 over ten steps, with the bonus as without."""
    right = start_value(example.Lanes(B), shaped(MATCHES[name]), True)
    left = start_value(example.Lanes(B), shaped(MATCHES[name]), False)
    assert right == pytest.approx(0.05 * (1 - GAMMA**LIMIT) / (1 - GAMMA), abs=1e-4)
    assert left == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("delay", [1, 4])
def test_carried_time_outs_keep_every_value(delay):
    """The time limit is not part of the task: 0.05 / (1 − γ), as rsl_rl's own PPO values it without a bonus."""
    match = payback.grm(GAMMA, delay, center=False)
    assert start_value(example.Lanes(B), shaped(match, "carry"), True) == pytest.approx(0.05 / (1 - GAMMA), rel=1e-3)


class Random(example.Lanes):
    """Lanes that also end by chance, without a time-out."""

    step_dt = 1.0
    """Read by rsl_rl to scale the weight of its RND."""

    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.unwrapped = self
        self.chance = torch.Generator().manual_seed(0)

    def step(self, actions):
        _, reward, dones, extras = super().step(actions)
        ends = (torch.rand(self.num_envs, generator=self.chance) < 0.15) & (dones == 0)
        self.episode_length_buf[ends] = 0
        extras["novelty"] = torch.rand(self.num_envs, generator=self.chance).double()
        return self.get_observations(), reward, dones | ends.long(), extras


class Kept(ShapedPPO):
    """Keeps each step's parts."""

    def process_env_step(self, obs, rewards, dones, extras):
        values = self.transition.values.clone()
        super().process_env_step(obs, rewards, dones, extras)
        stored = self.storage.rewards[self.storage.step - 1, :, 0].clone()
        row = (rewards, dones, extras["time_outs"], self.intrinsic_rewards, self.shaped_rewards, self.owed, stored)
        self.kept = [*getattr(self, "kept", []), (*row, values[:, 0])]


@pytest.mark.parametrize(("delay", "center", "on_truncation"), [(3, True, "settle"), (3, False, "carry")])
def test_it_pays_what_the_ledger_pays(delay, center, on_truncation):
    transform = payback.grm(GAMMA, delay, center=center)
    trained = runner(Random(4), {**shaped(transform, on_truncation), "class_name": Kept}, 50)
    with redirect_stdout(StringIO()):
        trained.learn(2)
    rows = (np.array(torch.stack(column)) for column in zip(*trained.alg.kept, strict=True))
    reward, dones, limit, F, paid, owed, stored, values = rows
    ledger = Ledger(transform, 4, learner_gamma=GAMMA)
    for t in range(len(F)):
        ends = dones[t].astype(bool)
        debt = ledger.owed
        expected = ledger.step(F[t].astype(float), ends, None)
        # What rsl_rl's V(s_t) charges again at a carried time-out is given back.
        expected += GAMMA * debt * limit[t] * (on_truncation == "carry")
        np.testing.assert_allclose(paid[t], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(owed[t], ledger.owed, rtol=1e-5, atol=1e-6)
    assert limit.sum() > 5
    assert (dones.astype(bool) & ~limit).sum() > 10
    assert (F[dones.astype(bool)] == 0).all()
    bootstrap = GAMMA * values * limit * (on_truncation == "carry")
    np.testing.assert_allclose(stored, reward + paid + bootstrap, rtol=1e-4, atol=1e-5)
    assert trained.alg.broken == 0


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.float64])
def test_what_is_paid_is_the_sum_whatever_the_rewards_dtype(dtype):
    """rsl_rl stores float32; loans of 0.3 in an integer would be 0."""

    class Cast(Random):
        def step(self, actions):
            obs, _, *rest = super().step(actions)
            return obs, torch.ones(self.num_envs, dtype=dtype), *rest

    bonus = {"intrinsic": lambda obs, a, n, e: torch.full((4,), 0.3)}
    match = payback.match_at_end(GAMMA)
    trained = runner(Cast(4), {**shaped(match), **bonus, "class_name": Kept}, 30)
    with redirect_stdout(StringIO()):
        trained.learn(1)
    paid, stored = (np.array(torch.stack([row[k].double() for row in trained.alg.kept])) for k in (4, 6))
    np.testing.assert_allclose(stored, 1 + paid, rtol=1e-6)
    assert np.isclose(paid, 0.3, rtol=1e-6).sum() > 30
    assert trained.alg.broken == 0


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
def test_it_records_what_it_paid(tmp_path, on_truncation):
    """A carried time-out is not settled, so that its episode is left unfinished in the log."""
    algorithm = {**shaped(payback.grm(GAMMA, 3), on_truncation), "record": tmp_path / "log"}
    trained = runner(Random(4), algorithm, 50)
    with redirect_stdout(StringIO()):
        trained.learn(2)
    trained.alg.log.close()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert found.rows == 4 * 100
    assert len(found.episodes.leak) > 10


def test_its_own_rnd_is_shaped_and_logged_as_it_was():
    rnd = {"num_outputs": 4, "predictor_hidden_dims": [8], "target_hidden_dims": [8], "weight": 1.0}
    algorithm = {"class_name": Kept, "transform": payback.grm(GAMMA, 3), "rnd_cfg": rnd}
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cfg = {**example.config(algorithm), "num_steps_per_env": 30}
        cfg["obs_groups"] = {**cfg["obs_groups"], "rnd_state": ["policy"]}
        trained = OnPolicyRunner(Random(4), cfg)
        trained.learn(2)
    alg = trained.alg
    assert alg.rnd is not None
    reward, F, paid, stored = (torch.stack([row[k] for row in alg.kept]) for k in (0, 3, 4, 6))
    torch.testing.assert_close(stored, reward + paid)  # once
    assert F.std() > 0
    assert (paid - F).abs().max() > 0.01
    assert alg.broken == 0


def test_the_page_trains():
    page = (Path(__file__).parents[2] / "docs" / "howto" / "rsl_rl.md").read_text()
    shown: dict = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S).group(1), shown)
    with redirect_stdout(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cfg = example.config(shown["algorithm"])
        cfg["obs_groups"] = {**cfg["obs_groups"], "rnd_state": ["policy"]}
        trained = OnPolicyRunner(Random(4), cfg)
        trained.learn(1)
    assert trained.alg.shaped_rewards.shape == (4,)


def test_the_class_is_found_by_its_name_and_a_match_of_ones_own_is_watched():
    right = payback.grm(GAMMA, 3, center=False)

    def never_settles(state, reward, done, valid=None, settle=None):
        return right.update(state, reward, torch.zeros_like(done), valid, settle)

    wrong = payback.Match(right.init, never_settles, gamma=GAMMA, owed=right.owed, drop=right.drop)
    trained = runner(Random(4), {**shaped(wrong), "class_name": "payback.integrations.rsl_rl:ShapedPPO"}, 30)
    with redirect_stdout(StringIO()), pytest.warns(ShapingWarning, match="did not cancel"):
        trained.learn(1)
    assert trained.alg.broken > 5


class Endless(example.Lanes):
    """Lanes that end when they are told to."""

    ends = False

    def step(self, actions):
        obs, reward, dones, _ = super().step(actions)
        return obs, reward, torch.full_like(dones, self.ends), {}


@pytest.mark.parametrize("settles", [True, False])
def test_a_debt_that_is_left_late_in_a_long_episode_is_not_hidden_by_the_discount(settles):
    """γ^t of the last step is 0 in float64: the end is judged from the debt before it."""
    match = payback.grm(GAMMA, 30, center=False)
    algorithm = {**shaped(match if settles else forgets_the_end(match)), "intrinsic": lambda *t: torch.ones(B)}
    env, length = Endless(B), 2000
    alg = runner(env, algorithm, 2 * length).alg
    obs = env.get_observations()
    with torch.inference_mode():
        for t in range(2 * length):
            env.ends = t % length == length - 1
            alg.act(obs)
            obs, *rest = env.step(torch.ones(B, 1))
            alg.process_env_step(obs, *rest)
    assert int(alg._wrong.sum()) == (0 if settles else 2 * B)


def test_a_checkpoint_keeps_the_mean_and_drops_the_debts(tmp_path):
    algorithm = shaped(payback.grm(GAMMA, 3))
    first, second = (runner(Random(4), algorithm, 25) for _ in range(2))
    with redirect_stdout(StringIO()):
        first.learn(1)
    torch.save({**first.alg.save(), "iter": 1, "infos": None}, tmp_path / "model.pt")
    second.load(str(tmp_path / "model.pt"))
    assert float(second.alg.loans[0].mean) == float(first.alg.loans[0].mean) != 0
    assert payback.owed(second.alg.transform, second.alg.loans).tolist() == [0.0] * 4
    assert payback.owed(first.alg.transform, first.alg.loans).abs().sum() > 0


def test_an_episodic_bonus_is_told_of_every_end():
    class Told(EpisodicCount):
        def __init__(self):
            super().__init__()
            self.ends, self.valid = [], []

        def __call__(self, obs, action, next_obs, extras):
            self.valid.append(extras["valid"])
            return super().__call__(obs["policy"].numpy(), action, next_obs["policy"].numpy(), extras)

        def reset(self, where):
            self.ends.append(where.copy())
            super().reset(where)

    trained = runner(Random(3), {**shaped(payback.grm(GAMMA, 3)), "class_name": Kept, "intrinsic": Told()}, 30)
    with redirect_stdout(StringIO()):
        trained.learn(1)
    bonus = trained.alg.intrinsic
    dones = np.stack([np.array(row[1]) for row in trained.alg.kept]).astype(bool)
    np.testing.assert_array_equal(np.stack(bonus.ends), dones[dones.any(axis=1)])
    np.testing.assert_array_equal(np.stack(bonus.valid), ~dones)


class Actions:
    """A space of one number, as rsl_rl's environments take it here; rsl_rl itself has no spaces."""

    shape = (1,)


READY = {make.__name__: make for make in (Count, EpisodicCount, Recency, SimHash, RND, NovelD)}
READY |= {make.__name__: lambda make=make: make(Actions()) for make in (ICM, RIDE, E3B, Disagreement)}


@pytest.mark.parametrize("name", READY)
def test_every_ready_bonus_reads_its_tensordicts(name):
    """Without view=, and past call 32, at which networks learn, although rsl_rl collects in inference mode."""
    intrinsic = READY[name]()
    trained = runner(Random(3), {**shaped(payback.grm(GAMMA, 3)), "class_name": Kept, "intrinsic": intrinsic}, 40)
    with redirect_stdout(StringIO()):
        trained.learn(1)
    F = torch.stack([row[3] for row in trained.alg.kept])
    assert F.std() > 0
    assert trained.alg.broken == 0


@pytest.mark.parametrize(
    ("error", "sentence", "options"),
    [
        (ValueError, "gamma 0.9, the loans are repaid with gamma 0.99", {"transform": payback.grm(0.99, 3)}),
        (ValueError, "needs one bonus", {"intrinsic": None}),
        (ValueError, "'carry' is refused", {"transform": payback.pbim(GAMMA), "on_truncation": "carry"}),
        (TypeError, "must be a RewardTransform", {"transform": 3}),
    ],
)
def test_a_wrong_configuration_is_one_sentence(error, sentence, options):
    with pytest.raises(error, match=sentence):
        runner(example.Lanes(B), {**shaped(payback.grm(GAMMA, 3)), **options})


@pytest.mark.parametrize(
    ("error", "sentence", "bonus"),
    [
        (ValueError, r"shape \(2, 1\), not \(2,\)", lambda obs, a, n, e: a),
        (RuntimeError, "raised KeyError at step 0", lambda obs, a, n, e: e["nothing"]),
        (ValueError, "the reward of environment 0 is nan", lambda obs, a, n, e: torch.full((B,), torch.nan)),
        (OverflowError, "float32 cannot hold", lambda obs, a, n, e: torch.full((B,), 1e39, dtype=torch.float64)),
    ],
)
def test_a_wrong_bonus_is_one_sentence(error, sentence, bonus):
    trained = runner(example.Lanes(B), {**shaped(payback.grm(GAMMA, 3, center=False)), "intrinsic": bonus})
    with redirect_stdout(StringIO()), pytest.raises(error, match=sentence):
        trained.learn(1)


def test_the_example_goes_right_where_the_naive_order_goes_left():
    shares = example.main(40)
    assert shares["no bonus"] > 0.9
    assert shares["ShapedPPO"] > 0.9
    assert shares["bonus settled, then bootstrapped"] < 0.5
