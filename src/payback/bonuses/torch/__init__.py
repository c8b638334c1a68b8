"""Intrinsic rewards of networks that train themselves while they are called, in Torch.

    env = ShapeVecReward(make_vec_env(grid, 16), RND(), payback.grm(0.99, delay=30))

Each is called as the adapters do, (obs, action, next_obs, info) → F (B,), and returns NumPy floats. Every
`learn_every` calls it learns from the transitions of those calls, so that no reward depends on its own or a later
transition. Vectors go through an MLP, images through a small CNN, the arrays of a Dict are flattened and
concatenated. `options` are those of `payback.bonuses.torch.method.Options`.
"""

try:
    from payback.bonuses.torch.curiosity import Curiosity
except ImportError as error:
    raise ImportError(f"payback.bonuses.torch needs Torch ({error}): pip install 'payback[bonuses]'") from error
from payback.bonuses.torch.disagreement import Disagreement
from payback.bonuses.torch.e3b import E3B
from payback.bonuses.torch.icm import ICM
from payback.bonuses.torch.noveld import NovelD
from payback.bonuses.torch.ride import RIDE
from payback.bonuses.torch.rnd import RND

__all__ = ["E3B", "ICM", "RIDE", "RND", "Curiosity", "Disagreement", "NovelD"]
