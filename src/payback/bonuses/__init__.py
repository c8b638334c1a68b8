"""Ready intrinsic rewards, causal by test: counts in NumPy here, networks in `payback.bonuses.torch` and `.jax`.

    env = ShapeVectorReward(make_vec_env("CartPole-v1", 8), SimHash(), payback.grm(0.99, delay=30))

A bonus is a callable of the adapters' form, (obs, action, next_obs, info) → F of shape (B,), on batches of B
environments. Rows that `info["valid"]` marks as invalid are paid 0 and change nothing. `reset(where)` clears what
belongs to an episode; the adapters call it after an episode's end and at a reset in mid-episode. `of_rollout` pays a
whole (T, B) rollout at once. `save(path)` and `load(path)` keep what a bonus has learned in an NPZ file.

All pay about α per step and never more than 10 α: they divide by the root mean square of their earlier values.
"""

from payback.bonuses.counts import Count, EpisodicCount, Recency, SimHash, episodic

__all__ = ["Count", "EpisodicCount", "Recency", "SimHash", "episodic"]
