"""Intrinsic rewards as pure functions for JAX, inside `jit`, `scan` and `vmap`: counts, RND, ICM, RIDE, NovelD, E3B.

    bonus = episodic(rnd())
    state = bonus.init(key, obs)
    state, F = bonus.update(state, obs, action, next_obs, done)

`obs` holds one row per environment, flattened for networks; `done` (B,) marks the ends of these transitions' episodes,
where episode-bound memory is cleared; `valid` (B,), if given, is False on invalid rows. `update` trains, as the bonuses
of `payback.bonuses.torch` do. A state is a tuple of arrays: keep it in the carry of your scan, and save it with it.
"""

try:
    from payback.bonuses.jax.counts import PureBonus, count, episodic, episodic_count
except ImportError as error:
    raise ImportError(f"payback.bonuses.jax needs JAX ({error}): pip install jax") from error
from payback.bonuses.jax.formulas import e3b, icm, noveld, ride, rnd

__all__ = ["PureBonus", "count", "e3b", "episodic", "episodic_count", "icm", "noveld", "ride", "rnd"]
