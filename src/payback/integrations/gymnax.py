"""JAX environments in gymnax's form: wrappers that add a shaped intrinsic reward, under `jit`, `vmap` and `scan`.

    env, params = gymnax.make("MountainCar-v0")
    env = ShapeVectorReward(LogWrapper(env), rnd(), payback.grm(0.99, delay=30), learner_gamma=0.99)
    obs, state = env.reset(keys, params)                                                keys (B,), one per environment
    obs, state, reward, terminated, truncated, info = env.step(keys, state, actions, params)

`step` returns as many values as the environment's own: six as of gymnax 1.0, five (with `done`) before it and behind
`LegacyStepAPIWrapper`. All that is remembered is in the state: the loans, the bonus, the last observation. `info` gets

    extrinsic r_t,  intrinsic F_t,  shaped F'_t,  owed the debt at the next step,  was_truncated the environment's word,
    residual |Σγ^t F'_t| / Σγ^t |F'_t| of the episode that ends at this step, 0 at all others

Nothing can be looked at under `jit`, so that no value raises or warns there: give `info` to `check_episodes` when a
scan is done. What is wrong with shapes and arguments is said when the function is traced. Put wrappers that measure the
extrinsic return (LogWrapper) inside, and nothing that scales or clips rewards outside.
"""

# JAX's array constructors take a dtype and a sharding without types; gymnax's environments are anything.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from payback.core.transform import Match, RewardTransform, drop
from payback.integrations.host import host
from payback.integrations.told import confirm_gamma, refuse_unknown, say_time_limit, say_unconfirmed

with host("JAX", "pip install 'payback[gymnax]'"):
    import jax
    import jax.numpy as jnp

    from payback.bonuses.jax.pure import PureBonus
    from payback.integrations.jax_residual import check_episodes
    from payback.integrations.jax_step import (
        CANNOT_HOLD,
        FINAL,
        one_per_environment,
        read_source,
        refuse_python_memory,
        six_values,
        space_with_debt,
        without_time_limit,
    )
    from payback.integrations.residual import Paid, add_step, nothing_paid

__all__ = ["ShapeReward", "ShapeVectorReward", "ShapedState", "Source", "check_episodes"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | PureBonus | str
"""(obs, action, next_obs, info) → (B,) in JAX, on batches; a bonus of `payback.bonuses.jax`; or an info key.

`next_obs` is the true one, also at an episode's end, where the environment shows it in `info["final_observation"]`
(gymnax 1.0 does). Where it does not, the last transition of an episode ends in the next one's first observation, and
its F is taken as 0: that favours nothing, because the last step's loan is repaid at once.
"""


class ShapedState(NamedTuple):
    """The environment's state with what the shaping remembers; keep it in the carry of your scan."""

    env_state: Any
    """The wrapped environment's own."""
    loans: Any
    """The transform's; `payback.save_state` writes it."""
    bonus: Any
    """A `PureBonus`'s, () for others."""
    obs: Any
    """The observation that the next step starts from, as the environment gave it."""
    paid: Paid


class ShapeVectorReward:
    """Add the shaped intrinsic reward to B environments in gymnax's form, which are stepped under `vmap` in here.

    F̄ and what a bonus learns are shared by the B environments. `reset` and `step` take B keys, states and actions, and
    one `params`; `reset` begins everything anew, F̄ and the bonus too, so call it once, as gymnax resets inside `step`.

    `on_truncation="settle"` collects the debt at a time limit and reports the step as terminated; "carry" leaves the
    debt to the bootstrapped value, and needs a six-valued `step`. `observe_debt` adds the debt to a flat observation.
    `event`, a callable or an info key, flags the steps at which `match_when` repays. `learner_gamma`, the learner's own
    discount, is compared with the transform's; another one is refused.
    """

    def __init__(
        self,
        env: Any,
        intrinsic: Source,
        transform: RewardTransform,
        on_truncation: str = "settle",
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
    ):
        refuse_unknown(transform, on_truncation)
        for source in (intrinsic, event):
            refuse_python_memory(source)
        self._env = env
        self._intrinsic, self._event, self._transform = intrinsic, event, transform
        self._settles, self._observe = on_truncation == "settle", observe_debt
        self._judged = isinstance(transform, Match)
        self._gamma = transform.gamma if isinstance(transform, Match) else 1.0
        self._remembers = not isinstance(intrinsic, str) or callable(event)
        self._confirmed, self._said = confirm_gamma(transform, learner_gamma), False

    def __getattr__(self, name: str) -> Any:
        if name == "_env":
            raise AttributeError(name)
        return getattr(self._env, name)

    def observation_space(self, params: Any = None) -> Any:
        """Return the environment's space, with the debt in it if it is observed."""
        space = self._env.observation_space(params)
        return space_with_debt(space) if self._observe else space

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, ShapedState]:
        """Reset all environments, and begin the shaping anew; `key` has one row per environment."""
        obs, env_state = jax.vmap(self._env.reset, in_axes=(0, None))(key, params)
        zeros, source = jnp.zeros(len(key)), self._intrinsic
        # The bonus is drawn with a key that no environment uses.
        bonus = source.init(jax.random.fold_in(key[0], 1), obs) if isinstance(source, PureBonus) else ()
        state = ShapedState(
            env_state=env_state,
            loans=self._transform.init(zeros),
            bonus=bonus,
            obs=obs if self._remembers else (),
            paid=nothing_paid(zeros),
        )
        return self._show(obs, zeros), state

    @partial(jax.jit, static_argnames=("self",))
    def step(self, key: jax.Array, state: ShapedState, action: Any, params: Any = None) -> tuple[Any, ...]:
        """Step all environments; the reward is r_t + F'_t."""
        out = jax.vmap(self._env.step, in_axes=(0, 0, 0, None))(key, state.env_state, action, params)
        obs, env_state, reward, terminated, truncated, info = six_values(out, self._settles)
        self._say_once(len(out) == 6)
        ended = terminated | truncated
        carried = jnp.zeros_like(ended) if self._settles else truncated & ~terminated
        bonus, F, event = self._ask(state, action, obs, info, ended)
        loans, shaped = self._transform.update(state.loans, F, ended & ~carried, None, event)
        debt, loans = self._leave(loans, carried, F)
        paid, residual = add_step(state.paid, shaped, debt, ended, ended & ~carried & self._judged, self._gamma)
        record = {"extrinsic": reward, "intrinsic": F, "shaped": shaped, "owed": debt}
        info = {**info, **record, "was_truncated": truncated, "residual": residual}
        if self._observe and FINAL in info:
            info[FINAL] = self._show(info[FINAL], debt)
        if self._settles:
            terminated, truncated = ended, carried
            info = without_time_limit(info, ended)
        state = ShapedState(env_state, loans, bonus, obs if self._remembers else (), paid)
        total = reward + shaped.astype(jnp.result_type(reward.dtype, jnp.float32))
        ends = (terminated, truncated) if len(out) == 6 else (ended,)
        return self._show(obs, jnp.where(ended, 0.0, debt)), state, total, *ends, info

    def _ask(
        self, state: ShapedState, action: Any, obs: Any, info: dict[str, Any], ended: jax.Array
    ) -> tuple[Any, jax.Array, jax.Array | None]:
        """Return the bonus's next state, F_t and the events."""
        source, bonus, like = self._intrinsic, state.bonus, state.paid.total
        transition = state.obs, action, info.get(FINAL, obs), info
        if isinstance(source, PureBonus):
            bonus, values = source.update(bonus, *transition[:3], ended)
        else:
            values = read_source(source, *transition)
        values = one_per_environment("intrinsic reward", values, like)
        F = values if FINAL in info or isinstance(source, str) else jnp.where(ended, 0.0, values)
        if self._event is None:
            return bonus, F, None
        return bonus, F, one_per_environment("event", read_source(self._event, *transition), like) != 0

    def _leave(self, loans: Any, carried: jax.Array, like: jax.Array) -> tuple[jax.Array, Any]:
        """Return the debts, and the loans without those that are left to the bootstrapped value."""
        if not isinstance(self._transform, Match):
            return jnp.zeros_like(like), loans
        debt = self._transform.owed(loans)
        return debt, loans if self._settles else drop(self._transform, loans, carried)[0]

    def _show(self, obs: Any, debt: jax.Array) -> Any:
        """Return the observation as the learner sees it."""
        if not self._observe:
            return obs
        if not isinstance(obs, jax.Array) or obs.ndim != 2 or not jnp.issubdtype(obs.dtype, jnp.floating):
            raise ValueError(CANNOT_HOLD)
        return jnp.concatenate((obs, debt[:, None].astype(obs.dtype)), axis=-1)

    def _say_once(self, tells_truncation: bool) -> None:
        """Say at the first trace what other adapters say at the first end, because nothing can warn under `jit`."""
        if not self._confirmed:
            self._confirmed = True
            say_unconfirmed(self._transform, stacklevel=4)
        if tells_truncation and self._settles and not self._said:
            self._said = True
            say_time_limit(stacklevel=4)


class ShapeReward:
    """Add the shaped intrinsic reward to one environment: `ShapeVectorReward` for a batch of one.

    Vectorise it with `jax.vmap` as any other: each environment then has an F̄ and a bonus of its own. Callables are
    called on batches of one; the parameters are those of `ShapeVectorReward`.
    """

    def __init__(
        self,
        env: Any,
        intrinsic: Source,
        transform: RewardTransform,
        on_truncation: str = "settle",
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
    ):
        self._env = env
        self._batch = ShapeVectorReward(env, intrinsic, transform, on_truncation, observe_debt, event, learner_gamma)

    def __getattr__(self, name: str) -> Any:
        if name == "_env":
            raise AttributeError(name)
        return getattr(self._env, name)

    def observation_space(self, params: Any = None) -> Any:
        """Return the environment's space, with the debt in it if it is observed."""
        return self._batch.observation_space(params)

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, ShapedState]:
        """Reset the environment, and begin the shaping anew."""
        obs, state = self._batch.reset(key[None], params)
        return _first(obs), state

    @partial(jax.jit, static_argnames=("self",))
    def step(self, key: jax.Array, state: ShapedState, action: Any, params: Any = None) -> tuple[Any, ...]:
        """Step the environment; the reward is r_t + F'_t."""
        action = jax.tree.map(lambda x: jnp.asarray(x)[None], action)
        obs, state, *rest = self._batch.step(key[None], state, action, params)
        return _first(obs), state, *(_first(part) for part in rest)


def _first(part: Any) -> Any:
    return jax.tree.map(lambda x: x[0], part)
