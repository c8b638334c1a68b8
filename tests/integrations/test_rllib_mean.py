"""RLlib: the mean F̄ is shared by remote runners and carried by checkpoints (make test-hosts)."""

import pytest

pytest.importorskip("ray.rllib", reason="pip install payback[rllib]", exc_type=ImportError)

import payback
from payback.integrations.rllib import centers_of

from .rllib_walk import GAMMA, configuration

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def config(walk):
    return configuration(walk)


def count_and_mean(runner):
    center = runner.shaping.shaping_state.loans[0]
    return center.count, center.mean


def test_remote_runners_share_the_mean(config, tmp_path):
    algorithm = config(payback.grm(GAMMA, 3), runners=2, log=()).build_algo()
    for _ in range(2):
        algorithm.train()
    centers = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: [*count_and_mean(runner), runner.num_envs],
        local_env_runner=False,
    )
    assert len(centers) == 2
    assert centers[0] == centers[1]
    assert centers[0][0] >= 2 * 48
    assert centers[0][1] > 0
    sampled = algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    assert centers[0][0] == sampled, "each reward counts once, however often F̄ is merged"
    path = algorithm.save_to_path(str(tmp_path))
    algorithm.stop()
    again = type(algorithm).from_checkpoint(path)
    again.train()
    counts = again.env_runner_group.foreach_env_runner(
        lambda runner: int(runner.shaping.shaping_state.loans[0].count), local_env_runner=False
    )
    assert counts == [again.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))] * 2
    again.stop()


@pytest.mark.parametrize("way", ["from_checkpoint", "restore"])
def test_checkpoints_carry_the_mean(config, way, tmp_path):
    algorithm = config(payback.grm(GAMMA, 3), log=()).build_algo()
    algorithm.train()
    before = centers_of(algorithm.env_runner.shaping.shaping_state.loans)[0]
    assert before.mean > 0
    path = algorithm.save(str(tmp_path)).checkpoint.path
    if way == "restore":
        again = config(payback.grm(GAMMA, 3), log=()).build_algo()
        again.restore(path)
    else:
        again = type(algorithm).from_checkpoint(path)
    assert again.env_runner.shaping_means == [before]
    again.train()
    sampled = again.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    assert int(centers_of(again.env_runner.shaping.shaping_state.loans)[0].count) == sampled > int(before.count)
    again.save(str(tmp_path / "again"))
    for one in (algorithm, again):
        one.stop()
