"""The ablations of both cliffs; all else of cliff walking is as `QLearning` has it."""

ABLATIONS = {
    "cumulative-mean": {"mean_horizon": None},
    "wide-rnd": {"rnd_hidden": (64, 64), "rnd_rate": 1e-2},
}
"""Settings that were looked at and not chosen: F̄ over all of training, and a wider RND that learns faster."""
