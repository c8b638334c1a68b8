"""rsl_rl: a match that does not settle is found, and a wrong configuration or bonus is refused in one sentence.

Runs in the hosts' environment (make test-hosts).
"""

from contextlib import redirect_stdout
from io import StringIO

import pytest

pytest.importorskip("torch")
pytest.importorskip("rsl_rl.runners", reason="make test-hosts", exc_type=ImportError)

import torch

import payback
from payback import ShapingWarning

from .own_match import forgets_the_end
from .rsl_rl_lanes import GAMMA, IGNORED_WARNINGS, B, Random, example, runner, shaped

pytestmark = [pytest.mark.host, *IGNORED_WARNINGS]


def test_the_class_is_found_by_its_name_and_a_match_of_ones_own_is_watched():
    right = payback.grm(GAMMA, 3, center=False)

    def never_settles(state, reward, done, valid=None, settle=None):
        return right.update(state, reward, torch.zeros_like(done), valid, settle)

    wrong = payback.Match(right.init, never_settles, gamma=GAMMA, owed=right.owed, drop=right.drop)
    trained = runner(Random(4), {**shaped(wrong), "class_name": "payback.integrations.rsl_rl:ShapedPPO"}, 30)
    with redirect_stdout(StringIO()), pytest.warns(ShapingWarning, match="did not cancel"):
        trained.learn(1)
    assert trained.alg.monitor.broken > 5


class Endless(example.Lanes):
    """Lanes that end when they are told to."""

    ends = False

    def step(self, actions):
        obs, reward, dones, _ = super().step(actions)
        return obs, reward, torch.full_like(dones, self.ends), {}


@pytest.mark.filterwarnings("ignore:the shaped rewards of . of . finished:payback.ShapingWarning")
@pytest.mark.parametrize("settles", [True, False])
def test_a_debt_that_is_left_late_in_a_long_episode_is_not_hidden_by_the_discount(settles):
    """γ^t of the last step is 0 in float64: the end is judged from the debt before it."""
    match = payback.grm(GAMMA, 30, center=False)
    algorithm = {**shaped(match if settles else forgets_the_end(match)), "bonus": lambda *t: torch.ones(B)}
    env, length = Endless(B), 2000
    alg = runner(env, algorithm, 2 * length).alg
    obs = env.get_observations()
    with torch.inference_mode():
        for t in range(2 * length):
            env.ends = t % length == length - 1
            alg.act(obs)
            obs, *rest = env.step(torch.ones(B, 1))
            alg.process_env_step(obs, *rest)
    assert alg.monitor.broken == (0 if settles else 2 * B)


@pytest.mark.parametrize(
    ("error", "sentence", "options"),
    [
        (ValueError, "gamma 0.9, the loans are repaid with gamma 0.99", {"transform": payback.grm(0.99, 3)}),
        (ValueError, "needs one bonus", {"bonus": None}),
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
        (
            ValueError,
            "the intrinsic reward of environment 0 at step 0 is nan",
            lambda obs, a, n, e: torch.full((B,), torch.nan),
        ),
        (OverflowError, "float32 cannot hold", lambda obs, a, n, e: torch.full((B,), 1e39, dtype=torch.float64)),
    ],
)
def test_a_wrong_bonus_is_one_sentence(error, sentence, bonus):
    trained = runner(example.Lanes(B), {**shaped(payback.grm(GAMMA, 3, center=False)), "bonus": bonus})
    with redirect_stdout(StringIO()), pytest.raises(error, match=sentence):
        trained.learn(1)
