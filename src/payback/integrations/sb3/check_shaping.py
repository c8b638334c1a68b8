"""The callback that checks what the wrapper cannot see, keeps F̄ with the model, and writes the shaping's figures."""

from __future__ import annotations

import warnings

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper

from payback.integrations.lasting_state import running_mean
from payback.integrations.ledger import ShapingWarning
from payback.integrations.sb3.saved_model import keep_means, restore_means
from payback.integrations.sb3.shape_vec_reward import ShapeVecReward
from payback.integrations.sb3.stack import OFF_POLICY, gamma_of, gamma_problems_of, is_blind, problems_of, shapings_of
from payback.integrations.watch import ROUNDING


class CheckShaping(BaseCallback):
    """Check what the wrapper cannot see: the learner's γ, what is wrapped around, and the reward that comes out of it.

    Refuses, when training starts, another γ than the transform's (of every shaping in the stack), a VecNormalize
    outside that scales and clips rewards, one inside with a replay buffer, and a buffer that relabels rewards; and at
    any step a reward that is not the r_t + F'_t that the shaping paid. `strict=False` warns and goes on. A learner with
    a replay buffer that does not see the debt is warned.

    F̄ is kept with the model: `model.save`, CheckpointCallback and `load` carry it, also to another number of
    environments. The logger gets, once per rollout, `shaping/` extrinsic, intrinsic, shaped (means per step), owed (the
    mean debt), mean (F̄), residual (the largest |Σγ^t F′_t| / Σγ^t |F′_t| of the finished episodes) and drops.
    """

    def __init__(self, strict: bool = True):
        super().__init__()
        self.strict = strict
        self._found = False
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        """The last step's rewards as the learner holds them, as they were then, and which episodes ended."""
        self._gamma: float | None = None
        self._stack: list[tuple[ShapeVecReward, list[VecEnvWrapper]]] = []
        self._sums = [0.0] * 4
        self._steps = 0

    def _on_training_start(self) -> None:
        for problem in problems_of(self.model, self.training_env):
            self._tell(problem)
        self._gamma = gamma_of(self.model)
        if is_blind(self.model, self.training_env):
            warnings.warn(f"{OFF_POLICY} This learner does not see it", ShapingWarning, stacklevel=3)
        self._stack = shapings_of(self.training_env)
        for shaping, _ in self._stack:
            shaping.around.left = 0  # because this callback sees all that the call stack would show, and more
        self._begin_sums()
        restore_means(self.model, self.training_env)

    def _on_step(self) -> bool:
        outermost = self._stack[0][0]
        self._sums = [total + sum(values) for total, values in zip(self._sums, outermost.told, strict=True)]
        self._steps += 1
        given, ends = self.locals.get("rewards"), self.locals.get("dones")
        if not self._found and given is not None:
            self._look_back(given)
            self._last = given, given.copy(), outermost.done
            for shaping, outside in self._stack:
                if given.tobytes() != shaping.paid.tobytes():
                    self._compare(given, shaping, outside)
                given = shaping.received
            if ends is not None and ends.tobytes() != outermost.done.tobytes():
                self._compare_ends(ends)
        return True

    def _on_rollout_start(self) -> None:
        if gamma_of(self.model) != self._gamma:
            self._gamma = gamma_of(self.model)
            for problem in gamma_problems_of(self.model, self._stack):
                self._tell(problem)

    def _on_rollout_end(self) -> None:
        self._look_back(None)
        keep_means(self.model, [shaping.ledger for shaping, _ in self._stack])
        ledger = self._stack[0][0].ledger
        if self._steps:
            for name, total in zip(("extrinsic", "intrinsic", "shaped", "owed"), self._sums, strict=True):
                self.logger.record(f"shaping/{name}", total / (self._steps * ledger.num_envs))
        mean = running_mean(ledger.state)
        if mean is not None:
            self.logger.record("shaping/mean", mean)
        if ledger.watch is not None:
            self.logger.record("shaping/residual", ledger.watch.take_residual())
        self.logger.record("shaping/drops", ledger.drops)
        self._begin_sums()

    def _on_training_end(self) -> None:
        # RL Zoo also calls this after a training that was refused before it began: then there is no stack.
        for shaping, _ in self._stack:
            if shaping.ledger.watch is not None:
                shaping.ledger.watch.sum_up()

    def _begin_sums(self) -> None:
        self._sums, self._steps = [0.0] * 4, 0

    def _compare(self, given: np.ndarray, shaping: ShapeVecReward, outside: list[VecEnvWrapper]) -> None:
        size = np.abs(shaping.received) + np.abs(shaping.shaped)
        wrong = np.flatnonzero(np.abs(given - shaping.paid) > ROUNDING * size + 1e-12)
        if not len(wrong):
            return
        self._found, k = True, int(wrong[0])
        self._tell(
            f"the shaping paid {shaping.paid[k]:.6g} to environment {k}, but the learner is given {given[k]:.6g}, "
            f"because a wrapper outside ({_names(outside)}) changes rewards: loans and repayments no longer "
            "cancel; put it inside ShapeVecReward"
        )

    def _look_back(self, given: np.ndarray | None) -> None:
        """Look at the last step's rewards again: callbacks after this one may have changed them in place.

        Rows in which an episode ended are left out, because SB3 itself adds the bootstrapped value there.
        """
        last, self._last = self._last, None
        if last is None or last[0] is given or self._found or last[0].tobytes() == last[1].tobytes():
            return
        now, then, done = last
        wrong = np.flatnonzero((now != then) & ~done)
        if len(wrong):
            self._found, k = True, int(wrong[0])
            self._tell(
                f"the learner was given {then[k]:.6g} for environment {k}, which then became {now[k]:.6g}, because "
                "another callback changes rewards: loans and repayments no longer cancel; add bonuses up before they "
                "are shaped"
            )

    def _compare_ends(self, ends: np.ndarray) -> None:
        shaping, outside = self._stack[0]
        wrong = np.flatnonzero(ends != shaping.done)
        if self._found or not len(wrong):
            return
        self._found, k = True, int(wrong[0])
        self._tell(
            f"the episode of environment {k} {'ends' if ends[k] else 'goes on'} for the learner, not for the shaping, "
            f"because a wrapper outside ({_names(outside)}) changes `done`: debts are settled at other steps than "
            "the learner's episodes end; put it inside ShapeVecReward"
        )

    def _tell(self, problem: str) -> None:
        if self.strict:
            raise ValueError(f"{problem}; to go on all the same use CheckShaping(strict=False)")
        warnings.warn(problem, ShapingWarning, stacklevel=3)


def _names(outside: list[VecEnvWrapper]) -> str:
    return ", ".join(type(wrapper).__name__ for wrapper in outside) or "the host"
