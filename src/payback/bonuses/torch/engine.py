"""The engine of all network bonuses: read, pay, learn, save. A `Method` adds the networks, the formula and the loss."""

# Torch's fork_rng, manual_seed, backward and Optimizer.step have parameters without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from payback.bonuses import bonus
from payback.bonuses.bonus import LIMIT, WARMUP, Bonus, Scale, as_tensor_like, read_options
from payback.bonuses.observations import View, map_parts, rollout_flags, rows_at, valid_rows
from payback.bonuses.torch.encoders import ActionEncoder, ObservationEncoder
from payback.bonuses.torch.memory import Batch, Ellipsoid, Learning, PerVisit, Rows, Whitening, scale_steps, whitened
from payback.core.arrays import all_finite

SEGMENT = 4096  # the most rows of a rollout that pass the networks at once
# Hosts may collect in inference mode, as rsl_rl does, or without gradients, which learning needs.
_with_gradients = torch.inference_mode(False)


class Options(bonus.Options, total=False):
    """Options of every network bonus in Torch, beside its own sizes."""

    view: View | None  # from a batch of observations to the array that the networks see
    layout: str | None  # where an image's channels are: "HWC", "CHW", or None to infer it from the shape
    device: str | torch.device
    seed: int  # repeats weights and the draw of transitions; Torch's own generator is left alone


@dataclass(frozen=True)
class Method:
    """What one intrinsic reward is, in terms of x, a, y: whitened s, encoded a, whitened s′, (B, …).

    `build` maps the shape of an observation and an `ActionEncoder`, or None, to networks; those without gradient stay
    as drawn. `novelty` and `loss` take (networks, x, a, y).
    """

    name: str
    sizes: Mapping[str, Any]  # saved with the bonus and compared when it is loaded
    build: Callable[[tuple[int, ...], Any], nn.ModuleDict]
    novelty: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]  # (B,), or what `memory.pay` takes
    loss: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]  # the number to minimise
    memory: PerVisit | Ellipsoid | None = None  # of the current episodes
    reads_actions: bool = False
    looks_back: bool = False  # whether the networks read s as well as s′


class NetworkBonus(Bonus):
    """An intrinsic reward made of networks: call it on batches of transitions, and it trains itself.

    A call reads, then pays, then learns: statistics and weights are those of earlier calls. Invalid rows are paid 0,
    enter no statistic and are not learned from. A bonus of your own is a `Method` of its networks, formula and loss.

    >>> from payback.bonuses.torch import RND
    >>> bonus = RND(learn_every=0)
    >>> type(bonus).__name__, bonus(None, None, np.eye(3), {})
    ('NetworkBonus', array([0., 0., 0.]))
    >>> bonus.learn((None, None, np.eye(3))) > 0
    True
    """

    def __init__(
        self,
        method: Method,
        actions: Any = None,
        *,
        alpha: float,
        rate: float,
        normalise: bool = True,
        warmup: int = WARMUP,
        clip: float = LIMIT,
        whiten: bool = True,
        learn_every: int = 32,
        share: float = 0.25,
        batch_size: int = 256,
        view: View | None = None,
        layout: str | None = None,
        device: str | torch.device = "cpu",
        seed: int = 0,
    ):
        read_options(learn_every, share, batch_size, warmup, clip)
        super().__init__(method.name, alpha, normalise, Scale(warmup, clip, first=0.0), method.memory)
        self.method, self.whiten = method, whiten
        self._device, self._seed, self._rate = _read_device(self.name, device), seed, rate
        self._encode = ObservationEncoder(self.name, view, layout, self._device)
        self._actions = None if actions is None else ActionEncoder(self.name, actions, self._device)
        self._learning = Learning(learn_every, share, batch_size, seed)
        self._shape: tuple[int, ...] | None = None
        self.networks = nn.ModuleDict()  # made at the first call, when the observations' shape is known

    @_with_gradients
    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions, then learn from them if it is time."""
        batch = self._read(obs, action, next_obs)
        valid = valid_rows(info, len(batch["y"]))
        self._refuse_not_finite(batch, valid, len(batch["y"]))
        novelty = self._pay_steps(batch, Rows(obs, next_obs, None, None if valid is None else valid[None]), 1)[0]
        F = novelty.cpu().numpy().astype(np.float64)
        if not all_finite(F if valid is None else F[valid]):
            raise ValueError(f"{self.name}: the bonus is not finite, because the weights have diverged; lower the rate")
        return self._paid(F, valid)

    @_with_gradients
    def of_rollout(self, obs: Any, actions: Any, next_obs: Any, dones: Any, valid: Any = None) -> Any:
        """Return F (T, B) of a finished rollout, as `Bonus.of_rollout` does, up to rounding.

        The networks see all steps up to the next time to learn at once, each whitened by the steps before it. The
        device is waited for once per rollout; RIDE and NovelD, which count visits, copy the observations to the host.
        """
        blocks = obs, actions, next_obs
        ends, counted = rollout_flags(self.name, blocks, dones, valid)
        if not ends.size:
            return as_tensor_like(next_obs, np.zeros(ends.shape))
        T, B = ends.shape
        batch = self._read(*(map_parts(lambda x: x.reshape(-1, *x.shape[2:]), block) for block in blocks))
        of_step = np.full(T, B) if counted is None else counted.sum(axis=1)
        self._refuse_not_finite(batch, None if counted is None else counted.ravel(), B)
        novelty, t = torch.zeros(T, B, device=self._device), 0
        while t < T:
            end = self._segment_end(t, of_step, B)
            steps, flat = slice(t, end), slice(t * B, end * B)
            flags = ends[steps], None if counted is None else counted[steps]
            rows = Rows(rows_at(obs, steps), rows_at(next_obs, steps), *flags)
            novelty[steps] = self._pay_steps({name: part[flat] for name, part in batch.items()}, rows, end - t)
            t = end
        if counted is not None:
            novelty = torch.where(torch.from_numpy(counted).to(self._device), novelty, 0.0)
        scaled = scale_steps(self._scale, novelty, of_step)
        paid = self.alpha * (scaled if self.normalise else novelty)
        if isinstance(next_obs, torch.Tensor):
            return paid.to(next_obs.device)
        return paid.cpu().numpy().astype(np.float64)

    @_with_gradients
    def learn(self, batch: tuple[Any, Any, Any]) -> float:
        """Take one gradient step on (obs, action, next_obs), each of N rows, and return the loss.

        With `learn_every=0` this is the only training; observations are whitened by the statistics of the calls.
        """
        return float(self._step(self._read(*batch)))

    def bind(self, observation_space: Any, action_space: Any) -> None:
        """Take the spaces of one environment: actions that were not passed, and the size of a Discrete observation."""
        self._encode.bind(observation_space)
        if self.method.reads_actions and self._actions is None and action_space is not None:
            self._actions = ActionEncoder(self.name, action_space, self._device)

    def _read(self, obs: Any, action: Any, next_obs: Any) -> Batch:
        if self.method.reads_actions and self._actions is None:
            remedy = "pass actions=env.action_space, that of one environment, or use an adapter, which binds the bonus"
            raise ValueError(f"{self.name} does not know the action space: {remedy}")
        y = self._encode(next_obs)
        if self._shape is None:
            self._build(tuple(y.shape[1:]))
        if tuple(y.shape[1:]) != self._shape:
            raise ValueError(f"{self.name} was made for observations of shape {self._shape}, got {tuple(y.shape[1:])}")
        x = {"x": self._encode(obs)} if self.method.looks_back else {}
        a = {} if self._actions is None else {"a": self._actions(action, len(y))}
        return {**x, **a, "y": y}

    def _build(self, shape: tuple[int, ...]) -> None:
        # Drawn on the CPU whatever Torch's default device is, so that a seed means the same weights on every device.
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.manual_seed(self._seed)
            networks = self.method.build(shape, self._actions)
            for layer in networks.modules():  # as RND's authors do
                if isinstance(layer, (nn.Linear, nn.Conv2d)):
                    nn.init.orthogonal_(layer.weight, math.sqrt(2))
                    if layer.bias is not None:
                        nn.init.zeros_(layer.bias)
        self.networks, self._shape = networks.to(self._device), shape
        self._whitening = Whitening(shape, self._device)
        trained = [weight for weight in networks.parameters() if weight.requires_grad]
        # In a third of the time on a CPU; elsewhere it would keep its count of steps on the device.
        self._optimiser = torch.optim.Adam(trained, lr=self._rate, fused=self._device.type == "cpu" or None)

    def _seen(self, batch: Batch, see: Callable[[torch.Tensor], torch.Tensor] | None = None) -> tuple[Any, Any, Any]:
        """Return x, a and y: s and s′ are whitened, by the statistics so far unless `see` does it."""
        see = see or (self._whitening if self.whiten else torch.Tensor.float)
        return see(batch["x"]) if "x" in batch else None, batch.get("a"), see(batch["y"])

    def _segment_end(self, t: int, rows: np.ndarray, B: int) -> int:
        """Return where the segment of steps from t on ends: at the next time to learn, or before."""
        if self.whiten and self._whitening.count == 0:
            return t + 1
        end = min(len(rows), t + max(1, SEGMENT // B))
        calls = np.cumsum(rows[t:end] > 0) + self._learning.calls
        due = np.flatnonzero(calls == self._learning.every) if self._learning.every else np.zeros(0, int)
        return t + int(due[0]) + 1 if len(due) else end

    def _pay_steps(self, batch: Batch, rows: Rows, n: int) -> torch.Tensor:
        """Return F (n, B) of n steps between two times to learn, before it is scaled; learn after the last."""
        kept = batch
        if rows.valid is not None:
            # By index, because a mask would make the host wait for the device.
            index = torch.from_numpy(np.flatnonzero(rows.valid)).to(self._device)
            kept = {name: part[index] for name, part in batch.items()}
        with torch.inference_mode():
            novelty = self.method.novelty(self.networks, *self._seen_in_turn(batch, kept, rows.valid, n))
            novelty = novelty.reshape(n, len(batch["y"]) // n, *novelty.shape[1:])
            if self.method.memory is not None:
                novelty = self.method.memory.pay(novelty, rows)
        if self._learning.add(kept, n if rows.valid is None else int(rows.valid.any(axis=1).sum())):
            for part in self._learning.draw():
                self._step(part)
        return novelty

    def _seen_in_turn(self, batch: Batch, kept: Batch, valid: np.ndarray | None, n: int) -> tuple[Any, Any, Any]:
        """Whiten each of n steps by the steps before it, and take them into account."""
        if self.whiten and n > 1:
            shape = n, len(batch["y"]) // n, *batch["y"].shape[1:]
            mean, var = self._whitening.add_steps(batch["y"].reshape(shape), valid)
            return self._seen(batch, lambda x: whitened(x.reshape(shape), mean, var).flatten(0, 1))
        seen = self._seen(batch)
        if self.whiten:
            self._whitening.add(kept["y"])
        return seen

    def _step(self, batch: Batch) -> torch.Tensor:
        loss = self.method.loss(self.networks, *self._seen(batch))
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return loss.detach()

    def _refuse_not_finite(self, batch: Batch, valid: np.ndarray | None, B: int) -> None:
        """Refuse valid rows that are not finite, before anything changes; there are B of each step."""
        floats = [part for part in batch.values() if part.dtype.is_floating_point]
        if not floats:
            return
        good = torch.stack([torch.isfinite(part).flatten(1).all(dim=1) for part in floats]).all(dim=0)
        bad = ~good if valid is None else ~good & torch.from_numpy(valid).to(good.device)
        if bool(bad.any()):
            k = int(bad.nonzero()[0])
            step = f" in step {k // B} of the rollout" if len(bad) > B else ""
            raise ValueError(f"{self.name}: the observation or action of environment {k % B}{step} is not finite")

    def _sizes(self) -> Mapping[str, Any]:
        return {**self.method.sizes, **({} if self._actions is None else {"actions": self._actions.size})}

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {**super()._arrays(), **self._learning._arrays(), "shape": np.array(self._shape or (), dtype=np.int64)}
        if self._actions is not None:
            arrays |= self._actions._arrays()
        if self._shape is not None:
            arrays |= {f"network.{key}": value.cpu().numpy() for key, value in self.networks.state_dict().items()}
            arrays |= {"mean": self._whitening.mean.cpu().numpy(), "var": self._whitening.var.cpu().numpy()}
            arrays |= {"rows": np.array(self._whitening.count)}
            for i, state in self._optimiser.state_dict()["state"].items():
                arrays |= {f"optimiser.{i}.{key}": value.cpu().numpy() for key, value in state.items()}
        return arrays

    @_with_gradients
    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        shape = tuple(arrays["shape"].tolist())
        if self._shape is not None and shape and shape != self._shape:
            what = f"a {self.name} for observations of shape {shape}"
            raise ValueError(f"{path} holds {what}, this one sees {self._shape}")
        if self._actions is None and "action_space" in arrays:
            self._actions = ActionEncoder.restored(self.name, arrays, self._device)
        self._learning._restore(arrays, self._device)
        super()._restore(arrays, path)
        self._shape = None
        if not shape:
            return
        self._build(shape)
        saved = {key: torch.from_numpy(value) for key, value in arrays.items()}

        def under(prefix: str) -> dict[str, torch.Tensor]:
            return {key.removeprefix(prefix): value for key, value in saved.items() if key.startswith(prefix)}

        self.networks.load_state_dict(under("network."))
        self._whitening.mean, self._whitening.var = saved["mean"].to(self._device), saved["var"].to(self._device)
        self._whitening.count = int(saved["rows"])
        state = self._optimiser.state_dict()
        moments = {i: under(f"optimiser.{i}.") for i in state["param_groups"][0]["params"]}
        self._optimiser.load_state_dict({**state, "state": {i: found for i, found in moments.items() if found}})


def _read_device(name: str, device: str | torch.device) -> torch.device:
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        there = "cpu, cuda" if torch.cuda.is_available() else "cpu"
        raise ValueError(f"{name}: the device {str(device)!r} is not there; this Torch has {there}") from error
    return found
