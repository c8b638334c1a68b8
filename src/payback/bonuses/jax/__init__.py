"""Intrinsic rewards as pure functions for JAX: counts, RND and ICM inside `jit`, `scan` and `vmap`.

    bonus = rnd()
    state = bonus.init(key, obs)
    state, F = bonus.update(state, obs, action, next_obs, done)

`obs` holds one row per environment, flattened for networks; `done` (B,) marks the ends of these transitions' episodes,
where episode-bound memory is cleared; `valid` (B,), if given, is False on invalid rows. Training happens
inside `update`, as in `payback.bonuses.torch`. A state is a tuple of arrays: keep it in the carry of your scan, and
save it with it.
"""

try:
    from payback.bonuses.jax.counts import count, episodic_count
except ImportError as error:
    raise ImportError(f"payback.bonuses.jax needs JAX ({error}): pip install jax") from error
from payback.bonuses.jax.inverse_features import icm
from payback.bonuses.jax.pure import PureBonus
from payback.bonuses.jax.random_distillation import rnd

__all__ = ["PureBonus", "count", "episodic_count", "icm", "rnd"]
