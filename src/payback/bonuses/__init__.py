"""Ready intrinsic rewards, causal by test: counts in NumPy here, networks in `payback.bonuses.torch` and `.jax`.

    env = ShapeVecReward(make_vec_env("CartPole-v1", 8), SimHash(), payback.grm(0.99, delay=30))

A bonus is a callable of the adapters' form, (obs, action, next_obs, info) → F of shape (B,), on batches of B
environments. Rows that `info["valid"]` marks as invalid are paid 0 and change nothing. A bonus whose memory lasts one
episode has `reset(where)`, which the adapters call after an episode's end and at a reset in mid-episode. Where a host
steps its environments one by one (RLlib) each environment gets a copy of such a bonus; one that has `reset` and no
memory of episodes says `episodic = False`, and is shared. `save(path)` and `load(path)` keep everything a bonus has
learned, in an NPZ file without pickle.
"""

from payback.bonuses.count import Count
from payback.bonuses.episodic_count import EpisodicCount
from payback.bonuses.recency import Recency
from payback.bonuses.simhash import SimHash

__all__ = ["Count", "EpisodicCount", "Recency", "SimHash"]
