"""Intrinsic rewards of networks that train themselves while they are called, in Torch.

    env = ShapeVectorReward(make_vec_env(grid, 16), episodic(RND()), payback.grm(0.99, delay=30))

Each is called as the adapters do, (obs, action, next_obs, info) → F (B,), and returns NumPy floats; `of_rollout` takes
(T, B) blocks after the rollout instead, and keeps them on their device. Every `learn_every` calls it learns from the
transitions of those calls, so no reward depends on its own or a later transition. Vectors go through an MLP, images
through a small CNN, a Dict's arrays are flattened and concatenated. For `options` see `torch.engine.Options`.
"""

try:
    from payback.bonuses.torch.engine import NetworkBonus
except ImportError as error:
    raise ImportError(f"payback.bonuses.torch needs Torch ({error}): pip install 'payback[bonuses]'") from error
from payback.bonuses.torch.formulas import E3B, ICM, RIDE, RND, Disagreement, NovelD

__all__ = ["E3B", "ICM", "RIDE", "RND", "Disagreement", "NetworkBonus", "NovelD"]
