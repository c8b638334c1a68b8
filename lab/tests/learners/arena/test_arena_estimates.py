"""What each method makes of a small rollout, against plain loops in NumPy; and mutants that must not pass."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback_lab.learners.arena import adops, eipo, estimates, hepo
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.named import method_of
from payback_lab.learners.arena.rollout import Collected
from payback_lab.learners.arena.train import agents_own
from payback_lab.learners.ppo.rollout import Events
from payback_lab.learners.ppo.update import Rollout

pytestmark = pytest.mark.slow

T, B = 12, 4
CONFIG = ArenaPPO(gamma=0.9, gae_lambda=0.8, environments=B, steps=T, batch=16, total_steps=48, adops_epsilon=1e-3)
"""ε is larger than usual, so that float32 shows it."""


def rollout(critics: int, acting=(0,) * B, seed: int = 0) -> Collected:
    """Make up a rollout in which episodes end at a quarter of the steps."""
    rng = np.random.default_rng(seed)
    done = rng.random((T, B)) < 0.25
    done[4, 0] = done[T - 1, 1] = True
    alive = np.concatenate([np.ones((1, B)), ~done[:-1]])
    reward, bonus = rng.normal(size=(T, B)), rng.random((T, B))
    value = rng.normal(size=(T, critics, B))
    seen = Rollout(None, None, alive, None, None, value, reward + bonus)
    events = Events(done, None, bonus, bonus, None)
    made = Collected(seen, reward, events, rng.normal(size=(critics, B)), (~done[-1]).astype(float), np.array(acting))
    arrays = {"seen": seen, "events": events}
    return made._replace(
        **{n: type(p)(*(None if a is None else jnp.asarray(a, jnp.float32) for a in p)) for n, p in arrays.items()},
        **{n: jnp.asarray(getattr(made, n), jnp.float32) for n in ("reward", "last_value", "last_alive")},
    )


def loops(collected: Collected, reward, critic: int) -> np.ndarray:
    """GAE, environment by environment, from the last step to the first."""
    done, value = np.asarray(collected.events.done), np.asarray(collected.seen.value)[:, critic]
    value = np.concatenate([value, np.asarray(collected.last_value)[critic][None]])
    found = np.zeros((T, B))
    for b in range(B):
        later = 0.0
        for t in reversed(range(T)):
            after = 0.0 if done[t, b] else value[t + 1, b]
            delta = float(reward[t, b]) + CONFIG.gamma * after - value[t, b]
            later = delta + (0.0 if done[t, b] else CONFIG.gamma * CONFIG.gae_lambda * later)
            found[t, b] = later
    return found


def equal(one, other) -> None:
    np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def targets(collected: Collected, *advantages: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(collected.seen.value)[:, n] + part for n, part in enumerate(advantages)]


def check_one_critic() -> None:
    made = rollout(1)
    found = method_of("grm-10", CONFIG).estimates((), jnp.zeros(()), made)
    advantage = loops(made, made.seen.reward, 0)
    equal(found.advantage[0], advantage)
    equal(found.target[0], targets(made, advantage)[0])


def preferred(made: Collected, zeta: float) -> np.ndarray:
    """F' of ADOPS, step by step."""
    reward, bonus, done = (np.asarray(a) for a in (made.reward, made.events.bonus, made.events.done))
    value = np.concatenate([np.asarray(made.seen.value), np.asarray(made.last_value)[None]])
    paid = np.zeros((T, B))
    for t, b in np.ndindex(T, B):
        after = np.zeros(2) if done[t, b] else value[t + 1, :, b]
        q = reward[t, b] + CONFIG.gamma * after[0]
        omega = value[t, 0, b] - q + value[t, 1, b] - CONFIG.gamma * after[1] - bonus[t, b]
        change = min(0.0, omega - CONFIG.adops_epsilon) if q < value[t, 0, b] else max(0.0, omega)
        paid[t, b] = bonus[t, b] + zeta * change
    return paid


def check_adops(zeta: float = 1.0) -> None:
    made = rollout(2)
    found = method_of("adopes", CONFIG).estimates((), jnp.asarray(zeta), made)
    paid = preferred(made, zeta)
    one, other = loops(made, made.reward, 0), loops(made, paid, 1)
    equal(found.paid, paid)
    equal(found.advantage[0], one + other)
    for ours, theirs in zip(found.target, targets(made, one, other), strict=True):
        equal(ours, theirs)


def check_adops_orders_actions() -> None:
    """What is worse for the task stays worse by ε in all; what is not stays no worse: on one-step advantages."""
    made = rollout(2, seed=3)
    one_step = replace(CONFIG, gae_lambda=0.0)
    task = np.asarray(estimates.estimated(one_step, made, made.reward, 0))
    total = np.asarray(adops.two_critics(one_step, (), jnp.ones(()), made).advantage[0])
    assert (total[task < -1e-5] < -0.9 * CONFIG.adops_epsilon).all()
    assert (total[task > 1e-5] > -1e-5).all()


def stage(which: int, alpha: float = 0.7) -> eipo.State:
    return eipo.State(jnp.float32(alpha), jnp.int32(which), jnp.array([-jnp.inf, -jnp.inf]))


def check_eipo() -> None:
    made = rollout(3)
    reward, bonus = np.asarray(made.reward), np.asarray(made.events.bonus)
    extrinsic, intrinsic, task = loops(made, reward, 0), loops(made, bonus, 1), loops(made, reward, 2)
    of_max = reward + bonus + 0.7 * task
    of_min = (0.7 - 1) * reward - bonus + extrinsic + intrinsic
    wanted = {
        eipo.MAX: (of_max - of_max.mean(), task, (0, 0, 1), (1,) * B),
        eipo.MIN: (extrinsic + intrinsic, of_min - of_min.mean(), (1, 1, 0), (0,) * B),
    }
    method = method_of("eipo", CONFIG)
    estimate, after = jax.jit(method.estimates), jax.jit(method.after)
    for which, (mixed, own, counts, acting) in wanted.items():
        found = estimate(stage(which), jnp.zeros(()), made)
        equal(found.advantage[0], mixed)
        equal(found.advantage[1], own)
        for ours, theirs in zip(found.target, targets(made, extrinsic, intrinsic, task), strict=True):
            equal(ours, theirs)
        assert [set(np.ravel(part).tolist()) for part in found.counts] == [{float(count)} for count in counts]
        assert method.control(stage(which), jnp.zeros(())).acting.tolist() == list(acting)
        equal(after(stage(which), stage(which), made).last, [of_max.mean(), of_min.mean()])


def check_eipo_stage() -> None:
    """A stage ends when the mean of its U, not centred, is not above that of the rollout before."""
    made, after = rollout(3), jax.jit(method_of("eipo", CONFIG).after)
    reward, bonus = np.asarray(made.reward), np.asarray(made.events.bonus)
    extrinsic, intrinsic, task = loops(made, reward, 0), loops(made, bonus, 1), loops(made, reward, 2)
    means = ((reward + bonus + 0.7 * task).mean(), ((0.7 - 1) * reward - bonus + extrinsic + intrinsic).mean())
    for which in (eipo.MAX, eipo.MIN):
        for last, ends in ((means[which] - 0.01, False), (means[which] + 0.01, True)):
            before = stage(which)._replace(last=jnp.zeros(2).at[which].set(last))
            assert int(after(before, before, made).stage) == (1 - which if ends else which)


def check_eipo_multiplier() -> None:
    """α falls while π is better at the task, by 0.005 times what is clipped to ±0.05, in max stages' last epochs."""
    step = method_of("eipo", CONFIG).step_multiplier
    assert step is not None
    for gain, change in ((0.02, -0.0001), (3.0, -0.00025), (-3.0, 0.00025), (0.0, 0.0)):
        for which, is_last in ((eipo.MAX, True), (eipo.MAX, False), (eipo.MIN, True)):
            after = step(stage(which), jnp.float32(gain), jnp.asarray(is_last)).multiplier
            expected = change if which == eipo.MAX and is_last else 0.0
            np.testing.assert_allclose(after, np.float32(0.7) + expected, atol=1e-7)


def check_hepo() -> None:
    method = method_of("hepo", CONFIG)
    state = method.init()._replace(multiplier=jnp.float32(0.6))
    control = method.control(state, jnp.zeros(()))
    assert control.acting.tolist() == [0, 0, 1, 1]
    made = rollout(4)._replace(acting=control.acting)
    reward, bonus = np.asarray(made.reward), np.asarray(made.events.bonus)
    by = [loops(made, bonus if n % 2 else reward, n) for n in range(4)]
    extrinsic = np.concatenate([by[0][:, :2], by[2][:, 2:]], axis=1)
    intrinsic = np.concatenate([by[1][:, :2], by[3][:, 2:]], axis=1)
    found = method.estimates(state, jnp.zeros(()), made)
    equal(found.advantage[0], extrinsic + intrinsic / 1.6)
    equal(found.advantage[1], intrinsic)
    for ours, theirs in zip(found.target, targets(made, *by), strict=True):
        equal(ours, theirs)
    assert [part[0].tolist() for part in found.counts] == [[1, 1, 0, 0]] * 2 + [[0, 0, 1, 1]] * 2
    equal(hepo.gradient(CONFIG, made), by[2][:, :2].mean() - by[0][:, 2:].mean())


def check_hepo_multiplier() -> None:
    """Adam down the median of the latest eight gradients, not below 0."""
    method, alpha, mean, square = method_of("hepo", CONFIG), 0.5, 0.0, 0.0
    state, slopes = method.init()._replace(multiplier=jnp.float32(0.5)), []
    gradient, after = jax.jit(lambda made: hepo.gradient(CONFIG, made)), jax.jit(method.after)
    for n in range(1, 12):
        made = rollout(4, acting=(0, 0, 1, 1), seed=n)
        slopes.append(float(gradient(made)))
        state = after(state, state, made)
        slope = np.clip(np.median(slopes[-8:]), -1, 1)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        alpha -= 0.01 * mean / (1 - 0.9**n) / (np.sqrt(square / (1 - 0.999**n)) + 1e-8)
        np.testing.assert_allclose(state.multiplier, alpha, rtol=1e-3, atol=1e-6)
    assert after(state, state._replace(multiplier=jnp.float32(-5)), made).multiplier == 0


def test_the_record_counts_the_episodes_of_the_agent_alone() -> None:
    made = rollout(4, acting=(0, 0, 1, 1))
    made = made._replace(events=made.events._replace(done=made.events.done > 0, truncated=made.events.done > 0))
    own = agents_own(made)
    for kept, all_of_them in ((own.done, made.events.done), (own.truncated, made.events.truncated)):
        np.testing.assert_array_equal(kept[:, :2], all_of_them[:, :2])
        assert all_of_them[:, 2:].any()
        assert not kept[:, 2:].any()


CHECKS = [
    check_one_critic,
    check_adops,
    check_adops_orders_actions,
    check_eipo,
    check_eipo_stage,
    check_eipo_multiplier,
    check_hepo,
    check_hepo_multiplier,
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_estimates_are_those_of_plain_loops(check) -> None:
    check()


def test_adopes_goes_part_of_the_way() -> None:
    check_adops(zeta=0.0)
    check_adops(zeta=0.4)


def always_alive(collected: Collected, *, first: bool = False):
    return jnp.ones((T + 1, B) if first else (T, B))


def without_centring(config, state, z, made):
    found = eipo.utilities(config, state.multiplier, made)
    kept = eipo_estimates(config, state, z, made)
    is_max = state.stage == eipo.MAX
    mixed, task = kept.advantage
    return kept._replace(advantage=(jnp.where(is_max, found.of_max, mixed), jnp.where(is_max, task, found.of_min)))


def after_centring(config, before, state, made):
    found = eipo.utilities(config, before.multiplier, made)
    means = jnp.stack([(u - u.mean()).mean() for u in (found.of_max, found.of_min)])
    ends = means[state.stage] <= state.last[state.stage]
    return state._replace(stage=jnp.where(ends, 1 - state.stage, state.stage), last=means)


def released_sign(config, state, gain, is_last):
    return eipo_step(config, state, -gain, is_last)


def own_steps_alone(config, made):
    by_mixed, by_bonus = hepo.halves(config, made).extrinsic
    return by_mixed[:, : B // 2].mean() - by_bonus[:, B // 2 :].mean()


def unclipped_preference(reward, *rest):
    return keep(reward, *rest[:-1], 0.0)


eipo_step, eipo_estimates, keep = eipo.step_multiplier, eipo.estimates, adops.keep_preference
MUTANTS = [
    # The values of the next episode enter at an episode's end: the trap in the public code of ADOPS.
    (estimates, "alive_after", always_alive, check_one_critic),
    (adops, "alive_after", always_alive, check_adops),
    (adops, "keep_preference", unclipped_preference, check_adops_orders_actions),
    (adops, "keep_preference", lambda reward, *rest: reward, check_adops_orders_actions),
    (eipo, "estimates", without_centring, check_eipo),
    # The stage is tested after centring: the trap in the released code of EIPO.
    (eipo, "next_stage", after_centring, check_eipo_stage),
    (eipo, "step_multiplier", released_sign, check_eipo_multiplier),
    (hepo, "gradient", own_steps_alone, check_hepo),
    (hepo, "LEAST", -10.0, check_hepo_multiplier),
    (hepo, "RECENT", 3, check_hepo_multiplier),
]


@pytest.mark.parametrize(("module", "name", "mutant", "check"), MUTANTS)
def test_a_mutant_is_noticed(monkeypatch: pytest.MonkeyPatch, module, name: str, mutant, check) -> None:
    monkeypatch.setattr(module, name, mutant)
    with pytest.raises(AssertionError):
        check()
