"""JAX environments in gymnax's form: wrappers that add a shaped intrinsic reward, under `jit`, `vmap` and `scan`.

    env, params = gymnax.make("MountainCar-v0")
    env = ShapeVectorReward(LogWrapper(env), rnd(), payback.grm(0.99, delay=30), learner_gamma=0.99)
    obs, state = env.reset(keys, params)                                                keys (B,), one per environment
    obs, state, reward, terminated, truncated, info = env.step(keys, state, actions, params)

`step` returns as many values as the environment's own: six as of gymnax 1.0, five (with `done`) before. `info` gets

    extrinsic r_t,  intrinsic F_t,  shaped F'_t,  owed the debt at the next step,  the environment's own truncated
    residual |Σγ^t F'_t| / Σγ^t |F'_t| of the episode that ends at this step, 0 at all others

Values cannot be read under `jit`, so none raises or warns there: pass `info` to `check_episodes` after a scan, and the
finished stack to `check_wiring` before training. Put wrappers that measure the extrinsic return (LogWrapper) inside,
and nothing that scales or clips rewards outside.
"""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from payback import messages
from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_gamma
from payback.integrations.host import host
from payback.integrations.potential import Potential, refuse_no_function
from payback.integrations.wiring import NO_END, OuterWrapperCheck, compare, names_of, rehearsed
from payback.ledger import TOLERANCE, Ledger, LedgerState, OnTruncation, make
from payback.theory import shape_episodic

with host("JAX", "pip install 'payback[gymnax]'"):
    import jax
    import jax.numpy as jnp

    from payback.bonuses.jax import PureBonus

__all__ = ["ShapeReward", "ShapeVectorReward", "ShapeWithPotential", "ShapedState", "Source"]
__all__ += ["check_episodes", "check_wiring"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | PureBonus | str
"""(obs, action, next_obs, info) → (B,) in JAX, on batches; a bonus of `payback.bonuses.jax`; or an info key.

`next_obs` is the episode's own last observation where the environment gives it in `info["final_observation"]` (gymnax
1.0 does). Elsewhere F of the last step is 0, which changes no preference, because its loan is repaid at once.
"""
FINAL = "final_observation"  # where gymnax 1.0 shows an episode's last observation
CANNOT_HOLD = "these observations cannot hold the debt: flatten them to vectors of floats, or use observe_debt=False"


class ShapedState(NamedTuple):
    """The environment's state with the shaping's memory; keep it in the carry of your scan.

    `payback.save_state` writes `ledger.loans`.
    """

    env_state: Any
    ledger: LedgerState
    bonus: Any  # the state of a `PureBonus`, () without one
    obs: Any  # the observation before the next step, () where nobody needs it


class _Wrapper:
    """Passes what it does not define to the wrapped environment."""

    def __getattr__(self, name: str) -> Any:
        if name == "_env":
            raise AttributeError(name)
        return getattr(self._env, name)


class ShapeVectorReward(_Wrapper):
    """Add the shaped intrinsic reward to B environments in gymnax's form, which this wrapper steps under `vmap`.

    The B environments share F̄ and what a bonus learns. `reset` and `step` take B keys, states and actions, and one
    `params`. Call `reset` once: it also restarts F̄ and the bonus, and gymnax resets episodes inside `step`. The
    parameters are those of Gymnasium's `ShapeVectorReward`; `on_truncation="carry"` needs a six-valued `step`,
    `observe_debt` a flat observation, and there is no `record`, because nothing is written under `jit`.
    """

    def __init__(
        self,
        env: Any,
        bonus: Source,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
    ):
        self._ledger = make(transform, on_truncation)
        self._carries = on_truncation == "carry" and isinstance(transform, Match)
        self._confirmed = messages.is_confirmed(transform, learner_gamma)
        messages.warn_of_transform(transform)
        messages.warn_unseen_debt(transform, None if observe_debt else on_truncation, "Pass observe_debt=True")
        for source in (bonus, event):
            is_pure = source is None or isinstance(source, (str, PureBonus))
            if not is_pure and (not callable(source) or hasattr(source, "reset")):  # it would remember while traced
                remedy = "give a pure function, a bonus of payback.bonuses.jax, or an info key"
                raise TypeError(f"{type(source).__name__} cannot be traced: {remedy}")
        self._env, self._bonus, self._event, self._observe = env, bonus, event, observe_debt
        self._outer = OuterWrapperCheck(1)  # in the first trace
        self._warns_of_limit = self._ledger.settles and on_truncation is None
        self._remembers = not isinstance(bonus, str) or callable(event)

    def observation_space(self, params: Any = None) -> Any:
        """Return the environment's space; if the debt is observed, with one more number, which has no bounds."""
        space = self._env.observation_space(params)
        if not self._observe:
            return space
        shape = tuple(getattr(space, "shape", ()))
        if len(shape) != 1 or not hasattr(space, "low"):
            raise ValueError(CANNOT_HOLD)
        low, high = (jnp.broadcast_to(jnp.asarray(bound), shape) for bound in (space.low, space.high))
        return type(space)(jnp.append(low, -jnp.inf), jnp.append(high, jnp.inf), (shape[0] + 1,), space.dtype)

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, ShapedState]:
        """Reset all environments, F̄ and the bonus; `key` has one row per environment."""
        obs, env_state = jax.vmap(self._env.reset, in_axes=(0, None))(key, params)
        self._bind(params)
        zeros, source = jnp.zeros(len(key)), self._bonus
        # The bonus is drawn with a key that no environment uses.
        bonus = source.init(jax.random.fold_in(key[0], 1), obs) if isinstance(source, PureBonus) else ()
        state = ShapedState(env_state, self._ledger.init(zeros), bonus, obs if self._remembers else ())
        return self._show(obs, zeros), state

    @partial(jax.jit, static_argnames=("self",))
    def step(self, key: jax.Array, state: ShapedState, action: Any, params: Any = None) -> tuple[Any, ...]:
        """Step all environments; the reward is r_t + F'_t."""
        self._bind(params)
        out = jax.vmap(self._env.step, in_axes=(0, 0, 0, None))(key, state.env_state, action, params)
        obs, env_state, reward, terminated, truncated, info = _six_values(out, settles=not self._carries)
        self._warn_once(len(out) == 6)
        ended = terminated | truncated
        bonus, F, event = self._ask(state, action, obs, info, ended)
        debts, paid = self._ledger.step(state.ledger, F, terminated, truncated, event=event)
        if self._ledger.settles and "discount" in info:
            info["discount"] = jnp.where(ended, 0.0, info["discount"])
        record = {"extrinsic": reward, "intrinsic": F, "shaped": paid.shaped, "owed": paid.owed}
        info = {**info, **record, "truncated": truncated, "residual": paid.residual}
        if self._observe and FINAL in info:
            info[FINAL] = self._show(info[FINAL], paid.owed)
        ends = (paid.terminated, paid.truncated) if len(out) == 6 else (ended,)
        after = ShapedState(env_state, debts, bonus, obs if self._remembers else ())
        return self._show(obs, debts.owed), after, _total(reward, paid.shaped), *ends, info

    def _bind(self, params: Any) -> None:
        """Tell a bonus made without `actions` which there are, in the first trace."""
        if isinstance(self._bonus, PureBonus) and self._bonus.for_actions is not None:
            self._bonus = self._bonus.bind(self._env.action_space(params))

    def _ask(self, state: ShapedState, action: Any, obs: Any, info: dict, ended: jax.Array) -> tuple[Any, Any, Any]:
        """Return the bonus's next state, F_t and the events."""
        source, bonus, event, like = self._bonus, state.bonus, None, state.ledger.owed
        transition = state.obs, action, info.get(FINAL, obs), info
        if isinstance(source, PureBonus):
            bonus, values = source.update(bonus, *transition[:3], ended)
        else:
            values = _read_source(source, *transition)
        values = _one_per_environment("intrinsic reward", values, like)
        F = values if FINAL in info or isinstance(source, str) else jnp.where(ended, 0.0, values)
        if self._event is not None:
            event = _one_per_environment("event", _read_source(self._event, *transition), like) != 0
        return bonus, F, event

    def _show(self, obs: Any, debt: jax.Array) -> Any:
        if not self._observe:
            return obs
        if not isinstance(obs, jax.Array) or obs.ndim != 2 or not jnp.issubdtype(obs.dtype, jnp.floating):
            raise ValueError(CANNOT_HOLD)
        return jnp.concatenate((obs, debt[:, None].astype(obs.dtype)), axis=-1)

    def _warn_once(self, shows_truncation: bool) -> None:
        """Warn at the first trace of what other adapters see at the first end, because nothing warns under `jit`."""
        if not self._confirmed:
            self._confirmed = True
            messages.warn_unconfirmed(self._ledger.transform)
        if self._outer.left and isinstance(self._ledger.transform, Match):
            self._outer.look()
        if shows_truncation and self._warns_of_limit:
            self._warns_of_limit = False
            messages.warn_time_limit()


class ShapeReward(ShapeVectorReward):
    """Add the shaped intrinsic reward to one environment: `ShapeVectorReward` for a batch of one.

    Vectorise it with `jax.vmap`: each environment then has an F̄ and a bonus of its own. Callables get batches of one.
    """

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, ShapedState]:
        """Reset the environment, F̄ and the bonus."""
        obs, state = super().reset(key[None], params)
        return _first(obs), state

    @partial(jax.jit, static_argnames=("self",))
    def step(self, key: jax.Array, state: ShapedState, action: Any, params: Any = None) -> tuple[Any, ...]:
        """Step the environment; the reward is r_t + F'_t."""
        action = jax.tree.map(lambda x: jnp.asarray(x)[None], action)
        obs, state, *rest = super().step(key[None], state, action, params)
        return _first(obs), state, *(_first(part) for part in rest)


class ShapeWithPotential(_Wrapper):
    """Add γΦ(s′) − Φ(s) to the reward of one environment in gymnax's form; vectorise it with `jax.vmap`.

    `potential`, written with jax.numpy, maps a batch of observations to Φ, (B,), and is called on batches of one;
    `gamma` is the learner's. Φ is 0 where an episode terminates and kept where it is truncated; a five-valued `step`
    has no truncations. `info` is that of `ShapeReward`: `intrinsic` Φ(s′), `shaped` the payment, `owed` Φ(s′) or 0.
    """

    def __init__(self, env: Any, potential: Potential, *, gamma: float):
        refuse_no_function(potential)
        self._env, self._potential, self._gamma = env, potential, read_gamma(gamma)

    @partial(jax.jit, static_argnames=("self",))
    def reset(self, key: jax.Array, params: Any = None) -> tuple[Any, tuple[Any, jax.Array]]:
        """Reset the environment; the state is (the environment's, Φ(s_0))."""
        obs, env_state = self._env.reset(key, params)
        return obs, (env_state, self._phi(obs))

    @partial(jax.jit, static_argnames=("self",))
    def step(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> tuple[Any, ...]:
        """Step the environment; the reward is r_t + γΦ(s_{t+1}) − Φ(s_t)."""
        out = self._env.step(key, state[0], action, params)
        obs, env_state, reward, terminated, truncated, info = _six_values(out, settles=True)
        if len(out) == 6 and FINAL not in info:
            raise KeyError(f"at a truncation Φ needs the last observation: put it into info[{FINAL!r}], as gymnax 1.0")
        first, last = self._phi(obs), self._phi(info.get(FINAL, obs))
        ends = terminated if len(out) == 6 else terminated | truncated
        shaped, owed = shape_episodic(state[1], last, ends, self._gamma), jnp.where(ends, 0.0, last)
        record = {"extrinsic": reward, "intrinsic": last, "shaped": shaped, "owed": owed, "truncated": truncated}
        after = env_state, jnp.where(terminated | truncated, first, last)
        flags = (terminated, truncated) if len(out) == 6 else (ends,)
        return obs, after, _total(reward, shaped), *flags, {**info, **record}

    def _phi(self, obs: Any) -> jax.Array:
        values = jnp.asarray(self._potential(jax.tree.map(lambda x: jnp.asarray(x)[None], obs)))
        return _one_per_environment("potential", values, jnp.zeros(1))[0]


def check_episodes(info: dict[str, Any]) -> int:
    """Warn if a finished episode's shaped rewards did not cancel; return how many did not.

    `info` is what `step` returned, stacked by a scan or not. Call it outside `jit`. An overflow of float32 counts too.

    >>> import jax.numpy as jnp
    >>> check_episodes({"residual": jnp.array([0.0, 3e-7])})
    0
    """
    residual = np.asarray(info["residual"])
    broken = int(np.count_nonzero(~(residual <= TOLERANCE)))
    if broken:
        messages.warn_broken(broken, None, float(np.max(residual)))
    return broken


def check_wiring(env: Any, params: Any = None, *, num_envs: int | None = 4, steps: int = 1000) -> int:
    """Play `steps` random steps, and compare the reward that comes out of the stack with r_t + F'_t as it was paid.

    Takes the finished stack; `num_envs` is the number of keys that its `step` takes, None for a single key. Raises
    InvarianceError where a wrapper outside changes the reward or ends episodes. Returns the number of episodes.
    """
    outside, shaping = list[Any](), env
    while not isinstance(vars(shaping).get("_ledger"), Ledger):
        outside.append(shaping)
        shaping = vars(shaping).get("_env")
        if shaping is None:
            raise ValueError("check_wiring found no ShapeReward or ShapeVectorReward; give it the finished stack")

    def split(key: jax.Array) -> jax.Array:
        return key if num_envs is None else jax.random.split(key, num_envs)

    def one(state: Any, key: jax.Array) -> tuple[Any, Any]:
        draw, move = jax.random.split(key)
        sample = env.action_space(params).sample
        action = sample(draw) if num_envs is None else jax.vmap(sample)(split(draw))
        _, state, reward, terminated, *truncated, info = env.step(split(move), state, action, params)
        flags = terminated, truncated[0] if truncated else jnp.zeros_like(terminated)
        return state, (reward, *flags, *(info[key] for key in ("extrinsic", "shaped", "owed", "truncated")))

    with rehearsed():
        _, state = env.reset(split(jax.random.key(0)), params)
        rows = jax.lax.scan(one, state, jax.random.split(jax.random.key(1), steps))[1]
    columns = [np.asarray(column).reshape(steps, -1) for column in rows]
    settles, names, finished = shaping._ledger.settles, names_of(outside), 0
    for t in range(steps):
        finished += int(np.count_nonzero(compare([column[t] for column in columns], t, settles, names)))
    if not finished:
        messages.warn(NO_END)
    return finished


def _total(reward: jax.Array, shaped: jax.Array) -> jax.Array:
    """Return r_t + F'_t in float32 at least, because integers round loans."""
    return reward + shaped.astype(jnp.result_type(reward.dtype, jnp.float32))


def _first(part: Any) -> Any:
    return jax.tree.map(lambda x: x[0], part)


def _six_values(out: tuple[Any, ...], settles: bool) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array, dict]:
    """Return (obs, state, reward, terminated, truncated, info) of a five- or six-valued step."""
    if len(out) == 6:
        obs, state, reward, terminated, truncated, info = out
    elif len(out) != 5:
        raise ValueError(f"the environment's step returns {len(out)} values; gymnax's form has five, or six as of 1.0")
    elif not settles:
        raise ValueError("on_truncation='carry' needs an environment whose step returns six values; use 'settle'")
    else:
        obs, state, reward, terminated, info = out
        truncated = info.get("truncated", jnp.zeros_like(terminated))
    terminated, truncated = (jnp.asarray(flags).astype(bool) for flags in (terminated, truncated))
    return obs, state, jnp.asarray(reward), terminated, truncated, dict(info)


def _read_source(source: Any, *transition: Any) -> Any:
    if isinstance(source, str):
        info = transition[-1]
        if source not in info:
            raise KeyError(f"info has no {source!r}; the environment gives {', '.join(sorted(map(str, info)))}")
        return info[source]
    try:
        return source(*transition)
    except jax.errors.TracerArrayConversionError as error:
        raise TypeError(f"the intrinsic reward must be written with jax.numpy, because it is traced: {error}") from None


def _one_per_environment(what: str, values: Any, like: jax.Array) -> jax.Array:
    values = jnp.asarray(values)
    if values.shape != like.shape:
        raise ValueError(f"the {what} has shape {values.shape}, not {like.shape}, one number per environment")
    return values.astype(like.dtype)
