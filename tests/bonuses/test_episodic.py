"""`episodic` divides any bonus by the visits of this episode, in NumPy, Torch and JAX alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback.bonuses import Count, EpisodicCount, episodic
from payback.bonuses import jax as pure
from payback.bonuses.observations import row_keys

from .cases import NETWORKS, STILL
from .streams import play, transitions

ROLLOUT = transitions(T=40, B=3)
VISITS = 1 / play(EpisodicCount(1.0), ROLLOUT)


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("make", [Count, NETWORKS["RND"], NETWORKS["RIDE"]], ids=["Count", "RND", "RIDE"])
def test_it_divides_by_the_visits_of_this_episode(make, root):
    expected = play(make(), ROLLOUT) / (VISITS**0.5 if root else VISITS)
    np.testing.assert_allclose(play(episodic(make(), root=root), ROLLOUT), expected)


def test_a_function_of_your_own():
    bonus = episodic(lambda obs, action, next_obs, info: np.ones(3), key=lambda obs: int(obs.argmax()))
    np.testing.assert_allclose(play(bonus, ROLLOUT), 1 / VISITS)
    np.testing.assert_allclose(bonus.of_rollout(*(ROLLOUT[k] for k in ("obs", "action", "next_obs", "done"))).max(), 1)
    with pytest.raises(TypeError, match="function of your own"):
        bonus.save("nowhere")
    with pytest.raises(TypeError, match="episodic needs a bonus"):
        episodic(0.3)


def test_numpy_and_jax_pay_the_same():
    ours = play(episodic(Count(1.0), root=True), ROLLOUT)
    bonus = pure.episodic(pure.count(4, 1.0, cell=lambda obs: obs.argmax(-1)), root=True)
    columns = [jnp.asarray(ROLLOUT[key]) for key in ("obs", "action", "next_obs", "done")]
    _, F = jax.jit(bonus.of_rollout, compiler_options={"xla_backend_optimization_level": 0})(
        bonus.init(jax.random.key(0), columns[0][0]), *columns
    )
    np.testing.assert_allclose(F, ours, rtol=1e-5)


def test_a_copy_for_another_environment_shares_the_networks():
    """RLlib steps its environments one by one: a predictor of each would learn from one environment alone."""
    bonus = episodic(NETWORKS["RND"](**STILL))
    row = np.eye(4, dtype=np.float32)[:1]
    first = bonus(row, None, 2 * row, {})
    other = bonus.fork()
    assert other.bonus is bonus.bonus
    np.testing.assert_allclose([bonus(2 * row, None, 2 * row, {}), other(row, None, 2 * row, {})], [first / 2, first])
    assert (counts := episodic(EpisodicCount())).fork().bonus is not counts.bonus


def test_large_observations_are_counted_by_a_digest():
    rng = np.random.default_rng(0)
    images = rng.integers(255, size=(20, 84, 84, 3)).astype(np.uint8)
    keys = row_keys("Count", np.concatenate([images, images]), None)
    assert len(set(keys)) == 20
    assert max(len(key) for key in keys) == 16
