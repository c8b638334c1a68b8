"""RLeXplore (rllte): its intrinsic rewards as F, made causal, and shaped rollout by rollout.

    shaping = ShapeRollouts(RND(envs), payback.grm(0.99, delay=30))
    shaped, terminated, truncated, F = shaping.shape(samples)      samples as rllte's `compute` takes them, (T, B, …)

The guarantee needs an F_t that depends on nothing after t, but rllte normalises rewards and observations by statistics
of the whole rollout. Here a causal scale replaces the normalisation of rewards, observation
statistics are updated after a rollout was rewarded, and RE3, which measures distances to later states, is refused.
"""

# pyright: standard
from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from payback import messages
from payback.core.scaling import scale_by_rms
from payback.core.transform import RewardTransform, chain
from payback.core.validate import read_flags
from payback.integrations.host import Shaping, host, read_intrinsic
from payback.ledger import OnTruncation, make
from payback.monitor import Monitor

with host("PyTorch, and rllte itself", "pip install 'payback[rllte]' and pip install --no-deps rllte-core==1.0.1"):
    import torch

KEYS = ("observations", "actions", "rewards", "terminateds", "truncateds", "next_observations")


class ShapedRollout(NamedTuple):
    """What the learner is to use instead of the rollout's own, all (T, B).

    `shaped` F' is to be added to the extrinsic rewards; `intrinsic` is F as the module gave it, 0 in invalid rows.
    Bootstrap at `truncated` steps only, which "settle" reports as `terminated`.
    """

    shaped: torch.Tensor
    terminated: torch.Tensor
    truncated: torch.Tensor
    intrinsic: torch.Tensor


class ShapeRollouts(Shaping):
    """Shape the rewards of an rllte module, one rollout after another.

    The parameters are those of Gymnasium's `ShapeVectorReward`; `scale` divides F by its root mean square so far, in
    the place of the module's own normalisation. With `record`, call `monitor.close()` at the end. After a reset in
    mid-episode call `reset()`. Call the module's `watch` yourself.
    """

    def __init__(
        self,
        module: Any,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
        scale: bool = True,
    ):
        if any(kind.__name__ == "RE3" for kind in type(module).__mro__):
            raise ValueError("RE3 looks ahead, to later states; use RND, ICM, E3B, Disagreement, PseudoCounts or RIDE")
        if hasattr(module, "rewards"):  # a mixture, whose parts hide their normalisation
            raise ValueError(f"{type(module).__name__} mixes several reward modules; give each its own ShapeRollouts")
        if not hasattr(module, "n_envs"):
            raise TypeError(f"ShapeRollouts shapes a reward module of rllte (rllte.xplore.reward.RND), got {module!r}")
        module.rwd_norm_type, module.rwd_norm = "none", None
        self.module = module
        scaled = chain(scale_by_rms(), transform) if scale else transform
        messages.warn_unseen_debt(transform, on_truncation, "Shape inside the environment, with observe_debt=True")
        ledger = make(scaled, on_truncation, trusted=True)
        self.monitor = Monitor(ledger, learner_gamma=learner_gamma, record=record, pays=np.float32)
        self.shaping_state = ledger.init(np.zeros(module.n_envs))

    def reset(self, where: np.ndarray | None = None) -> None:
        """Begin new episodes in the environments `where`, or all, after a reset in mid-episode; debts are dropped."""
        self.shaping_state = self.monitor.reset(self.shaping_state, where)

    def shape(self, samples: dict[str, torch.Tensor], valid: torch.Tensor | None = None) -> ShapedRollout:
        """Reward a rollout and shape it; `valid` (T, B) is False in autoreset rows, which pay and teach nothing."""
        terminated, truncated = (_flags(key, samples[key]) for key in ("terminateds", "truncateds"))
        rows = None if valid is None else _flags("valid", valid)
        t, ended = 0, terminated | truncated
        ends = []
        try:
            F = self._intrinsic(samples if rows is None else _without(samples, rows)).detach().cpu().double().numpy()
            shaped = np.empty(F.shape)
            for t in range(len(F)):
                row = None if rows is None else rows[t]
                F[t] = read_intrinsic(F[t], F.shape[1], self.monitor.steps, row)
                F[t] = F[t] if row is None else np.where(row, F[t], 0.0)
                self.shaping_state, step = self.monitor.step(self.shaping_state, F[t], terminated[t], truncated[t], row)
                shaped[t] = step.shaped
                ends.append((step.terminated, step.truncated))
        except Exception:
            # A caller that goes on must not find the debts of episodes that ended in what could not be rewarded.
            self.reset(np.logical_or.reduce(ended[t:], axis=0))
            raise
        columns = shaped.astype(np.float32), *map(np.array, zip(*ends, strict=True)), F.astype(np.float32)
        return ShapedRollout(*map(torch.as_tensor, columns))

    def _intrinsic(self, samples: dict[str, torch.Tensor]) -> torch.Tensor:
        module, observations = self.module, samples["observations"]
        kind, module.obs_norm_type = module.obs_norm_type, "frozen"
        try:
            F = module.compute(samples, sync=True)
        finally:
            module.obs_norm_type = kind
        if kind == "rms":
            module.obs_norm.update(observations.reshape(-1, *module.obs_shape).cpu())
        return F


def _flags(what: str, values: torch.Tensor) -> np.ndarray:
    flags = torch.as_tensor(values).cpu().numpy()
    return read_flags("ShapeRollouts", what, flags, flags)


def _without(samples: dict[str, torch.Tensor], valid: np.ndarray) -> dict[str, torch.Tensor]:
    """Replace each invalid row by the last valid one of its environment, from which the module learns nothing new."""
    T, B = valid.shape
    last = np.maximum.accumulate(np.where(valid, np.arange(T)[:, None], -1), axis=0)
    first = valid.argmax(axis=0)
    steps = torch.as_tensor(np.where(last < 0, first, last))
    return {key: samples[key][steps, torch.arange(B)] for key in KEYS}
