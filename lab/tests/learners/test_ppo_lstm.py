"""Acting and one full update equal torch-ac 1.4.0, in float32 and, to tell rounding from meaning, in float64."""

import contextlib
import runpy
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback_lab.learners.ppo.actor_critic import Parameters, act, initial_parameters
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.update import Rollout, advantages, initial_learner, unflatten, update

pytestmark = [pytest.mark.slow, pytest.mark.torch]

torch = pytest.importorskip("torch")
pytest.importorskip("torch_ac")
minigrid_envs = pytest.importorskip("minigrid.envs")
torch.set_num_threads(1)
PEER = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "torch_peer.py")))
CONFIG = PPO(gamma=0.995)


@contextlib.contextmanager
def precision(double: bool):
    """Compute in float64, in Torch and JAX alike."""
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    try:
        with jax.enable_x64(double):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def collected(p: Parameters):
    """Let torch-ac collect a rollout of short episodes with shaped rewards; return it and its algorithm."""
    network = PEER.torch_network()
    PEER.load_parameters(network, p)
    rng = np.random.default_rng(0)
    envs = [minigrid_envs.DoorKeyEnv(size=5, max_steps=37) for _ in range(CONFIG.environments)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    algorithm = PEER.torch_algorithm(CONFIG, network, envs, lambda *step: rng.normal())
    torch.manual_seed(0)
    # The first rollout begins with an empty memory; the second carries episodes over its start.
    algorithm.collect_experiences()
    before = algorithm.memory.clone(), algorithm.mask.clone(), list(algorithm.obs)
    experience, _ = algorithm.collect_experiences()
    return algorithm, before, experience


def by_time(tensor) -> np.ndarray:
    """Return torch-ac's (B·T, …) as (T, B, …)."""
    array = tensor.detach().numpy()
    return array.reshape(CONFIG.environments, CONFIG.steps, *array.shape[1:]).swapaxes(0, 1)


def rollout_of(experience) -> Rollout:
    image = by_time(experience.obs.image).astype(np.uint16)
    tiles = image[..., 0] | image[..., 1] << 4 | image[..., 2] << 7
    rollout = Rollout(
        tiles=tiles.reshape(CONFIG.steps, CONFIG.environments, -1).swapaxes(1, 2),
        memory=by_time(experience.memory).swapaxes(1, 2),
        alive=by_time(experience.mask)[..., 0],
        action=by_time(experience.action).astype(np.int32),
        log_prob=by_time(experience.log_prob),
        value=by_time(experience.value),
        reward=by_time(experience.reward),
    )
    return jax.tree.map(jnp.asarray, rollout)


@pytest.mark.parametrize(("double", "tolerance"), [(False, 2e-5), (True, 1e-12)])
def test_acting_equals_torch_ac(double, tolerance):
    """Memory, value, log-probability and advantage, over episode ends and the rollout's borders."""
    with precision(double):
        p = initial_parameters(jax.random.key(0))
        algorithm, (memory, mask, _), experience = collected(p)
        rollout = rollout_of(experience)
        assert 0 < (rollout.alive == 0).sum() < 200

        def step(carry, row):
            memory, alive = carry
            tiles, action, next_alive = row
            logits, value, after = act(p, image_of(tiles), memory, alive)
            log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=0), action[None], axis=0)[0]
            return (after, next_alive), (jnp.concatenate(memory), log_prob, value)

        memory = jnp.asarray(memory.numpy().T)
        first, ending = (jnp.asarray(part.numpy(), dtype=float) for part in (mask, algorithm.mask))
        start = Memory(memory[:HIDDEN], memory[HIDDEN:]), first
        ends = jnp.concatenate([rollout.alive[1:], ending[None]])
        rows = rollout.tiles, rollout.action, ends
        (last, alive), (memory, log_prob, value) = jax.lax.scan(step, start, rows)
        images = np.array([observation["image"] for observation in algorithm.obs]).transpose(3, 1, 2, 0)
        _, next_value, _ = act(p, tuple(images), last, alive)
        estimate = advantages(
            CONFIG,
            rollout.reward,
            jnp.concatenate([value, next_value[None]]),
            jnp.concatenate([rollout.alive, alive[None]]),
        )
        for ours, theirs in ((memory, rollout.memory), (log_prob, rollout.log_prob), (value, rollout.value)):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
        np.testing.assert_allclose(estimate, by_time(experience.advantage), rtol=0, atol=10 * tolerance)


def image_of(tiles):
    return tuple((tiles >> shift & mask).reshape(7, 7, -1) for shift, mask in ((0, 15), (4, 7), (7, 3)))


@pytest.mark.parametrize(("double", "tolerance"), [(False, 5e-4), (True, 1e-10)])
def test_one_update_equals_torch_ac(double, tolerance):
    """Four epochs, 32 minibatches, the same rollout and the same orders: the same parameters."""
    with precision(double):
        algorithm, _, experience = collected(initial_parameters(jax.random.key(0)))
        before = PEER.parameters_of(algorithm.acmodel)
        rollout, advantage = rollout_of(experience), jnp.asarray(by_time(experience.advantage))
        orders = []
        draw = algorithm._get_batches_starting_indexes
        algorithm._get_batches_starting_indexes = lambda: orders.append(draw()) or orders[-1]
        np.random.seed(0)  # noqa: NPY002 - torch-ac draws its permutations from it
        algorithm.update_parameters(experience)
        theirs = PEER.parameters_of(algorithm.acmodel)

        learner = initial_learner(Parameters(*map(jnp.asarray, before)))
        learner = update(CONFIG, learner, rollout, advantage, renumbered(orders))
        ours = jax.device_get(unflatten(learner.parameters))
        for name, old, new, other in zip(Parameters._fields, before, theirs, ours, strict=True):
            moved = np.abs(new - old).max()
            assert moved > 1e-4, name
            np.testing.assert_allclose(other, new, rtol=0, atol=tolerance * moved, err_msg=name)


def renumbered(orders) -> jax.Array:
    """Turn torch-ac's starting indexes, environment by environment, into our numbers of sequences."""
    rows = []
    for batches in orders:
        start = np.concatenate(batches)
        environment, step = start // CONFIG.steps, start % CONFIG.steps
        used = step // CONFIG.recurrence * CONFIG.environments + environment
        rows.append(np.concatenate([used, np.arange(len(used), CONFIG.sequences)]))
    assert [sum(map(len, batches)) for batches in orders] == [512, 496, 512, 496]
    return jnp.stack(rows)
