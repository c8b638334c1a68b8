"""Pure network bonuses, with the formulas, losses and initial weights of those in `payback.bonuses.torch`.

Observations are flattened, images too. `actions` is the number of discrete actions, or with `discrete=False` how many
numbers an action has; the gymnax adapter finds it in the environment. Visits are counted as in `episodic`, by `key` of
the observations in a hashed table of `slots`. Where a batch to learn from has invalid rows, they get no weight.
"""

# JAX's array constructors take a dtype and a sharding without types, and NamedTuples do not type their lambdas.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, Unpack

import jax
import jax.numpy as jnp

from payback.bonuses.bonus import ALPHA, Options
from payback.bonuses.jax.counts import SLOTS, Key, PureBonus, Visits
from payback.bonuses.jax.engine import Memory, PureNetworkBonus, Rows, Weights, init_mlp, mlp

P = ParamSpec("P")


def _bound_later(make: Callable[P, PureBonus]) -> Callable[P, PureBonus]:
    """Let `make` wait for its `actions`, the first argument, until `PureBonus.bind`."""

    def unknown(*row: Any) -> Any:
        raise ValueError(f"{make.__name__} does not know the actions: pass actions=, or bind(env.action_space(params))")

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> PureBonus:
        actions, *rest = args or (options.pop("actions", None),)
        if actions is not None:
            return make(actions, *rest, **options)  # type: ignore[call-arg]
        options.pop("discrete", None)
        return PureBonus(unknown, unknown, unknown, lambda n, kind: make(n, *rest, **options, discrete=kind))  # type: ignore[call-arg]

    return made


def rnd(
    alpha: float = ALPHA, *, width: int = 256, latent: int = 128, rate: float = 1e-3, **options: Unpack[Options]
) -> PureBonus:
    """Pay for observations whose random features a predictor has not learned yet (Burda et al. 2018).

        F_t = α ‖f̂(s_{t+1}) − f(s_{t+1})‖²

    F hardly changes within an episode; with GRM, use `episodic(rnd())`, which pays less for each further visit.

    >>> bonus, obs = rnd(width=8, latent=4), jnp.eye(3)
    >>> state = bonus.init(jax.random.key(0), obs)
    >>> jax.jit(bonus.update)(state, obs, None, obs, jnp.zeros(3, bool))[1].shape
    (3,)
    """
    build = partial(_distillation, width=width, latent=latent)
    return _bonus(build, _error, _mean_error, alpha=alpha, rate=rate, **options)


def noveld(
    alpha: float = ALPHA,
    *,
    key: Key | None = None,
    slots: int = SLOTS,
    margin: float = 0.5,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    **options: Unpack[Options],
) -> PureBonus:
    """Pay for crossing from the known to the new, once per episode and observation (Zhang et al. 2021).

        F_t = α max(ν(s_{t+1}) − c ν(s_t), 0) · [s_{t+1} is visited for the first time in this episode]

    ν is the error of `rnd` and c the `margin`.

    >>> bonus, obs = noveld(width=8, latent=4), jnp.eye(3)
    >>> state = bonus.init(jax.random.key(0), obs)
    >>> jax.jit(bonus.update)(state, obs, None, obs, jnp.zeros(3, bool))[1].tolist()
    [0.0, 0.0, 0.0]
    """
    build, novelty = partial(_distillation, width=width, latent=latent), partial(_difference, margin=margin)
    memory = _per_visit(Visits.by_hash(slots, key), lambda n: (n == 1).astype(jnp.float32))
    return _bonus(build, novelty, _mean_error, memory, looks_back=True, alpha=alpha, rate=rate, **options)


@_bound_later
def icm(
    actions: int | None = None,
    alpha: float = ALPHA,
    *,
    discrete: bool = True,
    width: int = 256,
    latent: int = 32,
    rate: float = 3e-4,
    forward: float = 0.2,
    inverse: float = 0.8,
    **options: Unpack[Options],
) -> PureBonus:
    """Pay for transitions that a forward model predicts badly, in features that actions influence (Pathak et al. 2017).

        F_t = α ‖φ(s_{t+1}) − g(φ(s_t), a_t)‖²

    >>> bonus, obs = icm(actions=2, width=8, latent=4), jnp.eye(3)
    >>> state = bonus.init(jax.random.key(0), obs)
    >>> jax.jit(bonus.update)(state, obs, jnp.array([0, 1, 0]), obs, jnp.zeros(3, bool))[1].shape
    (3,)
    """
    build = partial(_dynamics, actions=actions, width=width, latent=latent)
    losses = partial(_dynamics_losses, discrete=discrete, forward=forward, inverse=inverse)
    return _bonus(build, _surprise, losses, actions=actions, discrete=discrete, alpha=alpha, rate=rate, **options)


@_bound_later
def ride(
    actions: int | None = None,
    alpha: float = ALPHA,
    *,
    discrete: bool = True,
    key: Key | None = None,
    slots: int = SLOTS,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    forward: float = 10.0,
    inverse: float = 0.1,
    **options: Unpack[Options],
) -> PureBonus:
    """Pay for actions that change what actions can change, less with each visit (Raileanu and Rocktäschel 2020).

        F_t = α ‖φ(s_{t+1}) − φ(s_t)‖ / √n(s_{t+1})

    φ learns as in `icm`.

    >>> bonus, obs = ride(actions=2, width=8, latent=4), jnp.eye(3)
    >>> state = bonus.init(jax.random.key(0), obs)
    >>> jax.jit(bonus.update)(state, obs, jnp.array([0, 1, 0]), obs, jnp.zeros(3, bool))[1].tolist()
    [0.0, 0.0, 0.0]
    """
    build = partial(_dynamics, actions=actions, width=width, latent=latent)
    losses = partial(_dynamics_losses, discrete=discrete, forward=forward, inverse=inverse)
    memory = _per_visit(Visits.by_hash(slots, key), lambda n: jax.lax.rsqrt(n.astype(jnp.float32)))
    read = {"actions": actions, "discrete": discrete}
    return _bonus(build, _impact, losses, memory, **read, alpha=alpha, rate=rate, **options)


@_bound_later
def e3b(
    actions: int | None = None,
    alpha: float = ALPHA,
    *,
    discrete: bool = True,
    ridge: float = 0.1,
    width: int = 256,
    latent: int = 128,
    rate: float = 1e-4,
    **options: Unpack[Options],
) -> PureBonus:
    """Pay for features that this episode has not seen yet, as an ellipsoid measures it (Henaff et al. 2022).

        F_t = α φ(s_{t+1})ᵀ C⁻¹ φ(s_{t+1}),   C = λI + Σ φφᵀ over this episode's earlier s′,  λ the `ridge`

    C⁻¹ is kept in float32.

    >>> bonus, obs = e3b(actions=2, normalise=False, width=8, latent=4), jnp.ones((1, 3))
    >>> state, row = bonus.init(jax.random.key(0), obs), (obs, jnp.array([0]), obs, jnp.array([False]))
    >>> state, first = bonus.update(state, *row)
    >>> bool(bonus.update(state, *row)[1] < first)
    True
    """
    if not ridge > 0:
        raise ValueError(f"ridge must be larger than 0, because C has to be inverted; got {ridge!r}")
    build = partial(_dynamics, actions=actions, width=width, latent=latent, forward=False)
    losses, memory = partial(_misread, discrete=discrete), _ellipsoid(latent, ridge)
    read = {"actions": actions, "discrete": discrete}
    return _bonus(build, _features, losses, memory, **read, alpha=alpha, rate=rate, **options)


def _bonus(*method: Any, **options: Any) -> PureBonus:
    network = PureNetworkBonus(*method, **options)
    return PureBonus(network.init, network.update, network.learn)


# ------------------------------------------------------------------ formulas and losses: (fixed, trained, rows) → (B,)


def _distillation(key: jax.Array, size: int, *, width: int, latent: int) -> tuple[Weights, Weights]:
    """Return the fixed random network and its predictor, which has two layers more."""
    one, two = jax.random.split(key)
    return init_mlp(one, size, width, latent), init_mlp(two, size, width, width, width, latent)


def _error(fixed: Weights, trained: Weights, rows: Rows) -> jax.Array:
    return ((mlp(trained, rows.y) - mlp(fixed, rows.y)) ** 2).sum(axis=-1)


def _mean_error(fixed: Weights, trained: Weights, rows: Rows) -> jax.Array:
    """Return the squared error per feature, so that the rate means the same for every latent size."""
    return _error(fixed, trained, rows) / fixed[-1][1].size


def _difference(fixed: Weights, trained: Weights, rows: Rows, *, margin: float) -> jax.Array:
    after, before = _error(fixed, trained, rows), _error(fixed, trained, rows._replace(y=rows.x))
    return jnp.maximum(after - margin * before, 0.0)


def _dynamics(
    key: jax.Array, size: int, *, actions: Any, width: int, latent: int, forward: bool = True
) -> tuple[Weights, Weights]:
    """Return φ(s), the forward model g(φ(s), a) → φ(s′) and the inverse model (φ(s), φ(s′)) → a."""
    one, two, three = jax.random.split(key, 3)
    trained = {"encoder": init_mlp(one, size, width, width, latent)}
    if forward:
        trained["model"] = init_mlp(two, latent + actions, width, latent)
    return (), {**trained, "inverse": init_mlp(three, 2 * latent, width, actions)}


def _features(fixed: Weights, trained: Weights, rows: Rows) -> jax.Array:
    return mlp(trained["encoder"], rows.y)


def _surprise(fixed: Weights, trained: Weights, rows: Rows) -> jax.Array:
    before, after = mlp(trained["encoder"], rows.x), mlp(trained["encoder"], rows.y)
    return ((mlp(trained["model"], jnp.concatenate([before, rows.a], axis=-1)) - after) ** 2).sum(axis=-1)


def _impact(fixed: Weights, trained: Weights, rows: Rows) -> jax.Array:
    before, after = mlp(trained["encoder"], rows.x), mlp(trained["encoder"], rows.y)
    return jnp.sqrt(((after - before) ** 2).sum(axis=-1))


def _misread(fixed: Weights, trained: Weights, rows: Rows, *, discrete: bool) -> jax.Array:
    """Return the error of a predicted from φ(s) and φ(s′): cross-entropy, or mean squared error of numbers."""
    before, after = mlp(trained["encoder"], rows.x), mlp(trained["encoder"], rows.y)
    guess = mlp(trained["inverse"], jnp.concatenate([before, after], axis=-1))
    if discrete:
        return -(jax.nn.log_softmax(guess) * rows.a).sum(axis=-1)
    return ((guess - rows.a) ** 2).mean(axis=-1)


def _dynamics_losses(
    fixed: Weights, trained: Weights, rows: Rows, *, discrete: bool, forward: float, inverse: float
) -> jax.Array:
    """Return  forward · ½‖g(φ(s), a) − φ(s′)‖² + inverse · (error of a predicted from φ(s), φ(s′))."""
    ahead = forward * 0.5 * _surprise(fixed, trained, rows)
    return ahead + inverse * _misread(fixed, trained, rows, discrete=discrete)


def _per_visit(visits: Visits, factor: Callable[[jax.Array], jax.Array]) -> Memory:
    """Multiply novelty by a factor of n(s′), the visits in this episode."""

    def pay(state: Any, novelty: jax.Array, *row: jax.Array) -> tuple[Any, jax.Array]:
        state, n = visits.arrive(state, *row)
        return state, novelty * factor(n)

    return Memory(visits.init, pay)


def _ellipsoid(latent: int, ridge: float) -> Memory:
    """Keep C⁻¹ of every environment's episode, (B, d, d), by the formula of Sherman and Morrison."""
    fresh = jnp.eye(latent) / ridge

    def pay(inverse: jax.Array, features: jax.Array, obs: Any, next_obs: Any, done: Any, valid: Any) -> tuple[Any, Any]:
        turned = jnp.einsum("bij,bj->bi", inverse, features)
        F = jnp.maximum((features * turned).sum(axis=-1), 0.0)  # rounding may leave a little less than 0
        change = turned[:, :, None] * (turned / (1 + F)[:, None])[:, None, :]
        inverse = jnp.where(valid[:, None, None], inverse - change, inverse)
        return jnp.where((done & valid)[:, None, None], fresh, inverse), F

    return Memory(lambda obs: jnp.broadcast_to(fresh, (len(obs), latent, latent)), pay)
