"""The engine of all network bonuses: read, pay, learn, save. A `Method` adds the networks, the formula and the loss."""

# Torch's fork_rng, manual_seed, backward and Optimizer.step have parameters without types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from payback.bonuses import bonus
from payback.bonuses.bonus import LIMIT, WARMUP, Bonus, Scale, as_tensor_like, read_options
from payback.bonuses.observations import map_parts, rollout_flags, valid_rows
from payback.bonuses.torch.encoders import ActionEncoder, ObservationEncoder
from payback.bonuses.torch.memory import Batch, Ellipsoid, Learning, PerVisit, Rows, Whitening, scale_steps, whitened
from payback.bonuses.torch.networks import initialise, read_device
from payback.core.arrays import all_finite

SEGMENT = 4096
"""The most rows of a rollout that pass the networks at once."""
_with_gradients = torch.inference_mode(False)
"""Hosts may collect in inference mode, as rsl_rl does, or without gradients, which learning needs."""


class Options(bonus.Options, total=False):
    """Options of every network bonus in Torch, beside its own sizes."""

    view: Callable[[Any], Any] | None
    """From a batch of observations to the array that the networks see, for instance `lambda obs: obs["image"]`."""
    layout: str | None
    """Where an image's channels are: "HWC", "CHW", or None to infer it from the shape."""
    device: str | torch.device
    seed: int
    """Repeats weights and the draw of transitions; Torch's own generator is left alone."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """What one intrinsic reward is, in terms of x, a, y: whitened s, encoded a, whitened s′, (B, …)."""

    name: str
    sizes: Mapping[str, Any]
    """Saved with the bonus and compared when it is loaded."""
    build: Callable[[tuple[int, ...], ActionEncoder | None], nn.ModuleDict]
    """From an observation's shape and the action encoder to the networks; those without gradient stay as drawn."""
    novelty: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]
    """(networks, x, a, y) → (B,), or what `memory.pay` takes."""
    loss: Callable[[nn.ModuleDict, Any, Any, torch.Tensor], torch.Tensor]
    """(networks, x, a, y) → the number to minimise."""
    memory: PerVisit | Ellipsoid | None = None
    """What it remembers of the current episodes."""
    reads_actions: bool = False
    looks_back: bool = False
    """Whether the networks read s as well as s′."""


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
        view: Callable[[Any], Any] | None = None,
        layout: str | None = None,
        device: str | torch.device = "cpu",
        seed: int = 0,
    ):
        read_options(learn_every, share, batch_size, warmup, clip)
        super().__init__(method.name, alpha, normalise, Scale(warmup, clip, first=0.0))
        self.method, self.whiten, self.episodic = method, whiten, method.memory is not None
        self._device, self._seed, self._rate = read_device(self.name, device), seed, rate
        self._encode = ObservationEncoder(self.name, view, layout, self._device)
        self._actions = None if actions is None else ActionEncoder(self.name, actions, self._device)
        self._learning = Learning(learn_every, share, batch_size, seed)
        self._shape: tuple[int, ...] | None = None
        self.networks = nn.ModuleDict()
        """Made at the first call, when the observations' shape is known."""

    @_with_gradients
    def __call__(self, obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
        """Return F (B,) of a batch of transitions, then learn from them if it is time."""
        batch = self._read(obs, action, next_obs)
        valid = valid_rows(info, len(batch.y))
        self._refuse_not_finite(batch, valid, len(batch.y))
        novelty = self._pay_steps(batch, Rows(obs, next_obs, None, None if valid is None else valid[None]), 1)[0]
        F = novelty.cpu().numpy().astype(np.float64)
        if not all_finite(F if valid is None else F[valid]):
            raise ValueError(f"{self.name}: the bonus is not finite, because the weights have diverged; lower the rate")
        return self._paid(F, valid)

    @_with_gradients
    def of_rollout(self, obs: Any, actions: Any, next_obs: Any, dones: Any, valid: Any = None) -> Any:
        """Return F (T, B) of a finished rollout, as `Bonus.of_rollout` does, up to rounding.

        The networks see all steps up to the next time to learn at once, each whitened by the steps before it. All
        stays on the device, which is waited for once per rollout; RIDE and NovelD, which count visits, copy the
        observations to the host, also once.
        """
        ends, counted = rollout_flags(self.name, dones, valid)
        if not ends.size:
            return as_tensor_like(next_obs, np.zeros(ends.shape))
        flat = [part if part is None else self._flat(part, ends.shape) for part in (obs, actions, next_obs)]
        batch = self._read(*flat)
        (T, B), of_step = ends.shape, np.full(len(ends), ends.shape[1]) if counted is None else counted.sum(axis=1)
        self._refuse_not_finite(batch, None if counted is None else counted.ravel(), B)
        novelty, t = torch.zeros(T, B, device=self._device), 0
        while t < T:
            end = self._segment_end(t, of_step, B)
            steps, at = slice(t, end), slice(t * B, end * B)
            s, then = (map_parts(lambda x, at=at: x[at], part) for part in (flat[0], flat[2]))
            rows = Rows(s, then, ends[steps], None if counted is None else counted[steps])
            novelty[steps] = self._pay_steps(batch.map(lambda x, at=at: x[at]), rows, end - t)
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

    def reset(self, where: Any) -> None:
        """Forget what belongs to the episodes of the environments in the (B,) mask."""
        if self.method.memory is not None:
            self.method.memory.reset(where)

    # ------------------------------------------------------------------ reading

    def _read(self, obs: Any, action: Any, next_obs: Any) -> Batch:
        if self.method.reads_actions and self._actions is None:
            raise ValueError(
                f"{self.name} does not know the action space: pass actions=env.action_space, that of one environment, "
                "or use an adapter, which binds the bonus to its environment"
            )
        y = self._encode(next_obs)
        if self._shape is None:
            self._build(tuple(y.shape[1:]))
        if tuple(y.shape[1:]) != self._shape:
            raise ValueError(f"{self.name} was made for observations of shape {self._shape}, got {tuple(y.shape[1:])}")
        x = self._encode(obs) if self.method.looks_back else None
        return Batch(x, None if self._actions is None else self._actions(action, len(y)), y)

    def _build(self, shape: tuple[int, ...]) -> None:
        # Drawn on the CPU whatever Torch's default device is, so that a seed means the same weights on every device.
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.manual_seed(self._seed)
            networks = self.method.build(shape, self._actions)
            initialise(networks)
        self.networks, self._shape = networks.to(self._device), shape
        self._whitening = Whitening(shape, self._device)
        trained = [weight for weight in networks.parameters() if weight.requires_grad]
        self._optimiser = torch.optim.Adam(trained, lr=self._rate)

    def _seen(self, batch: Batch, see: Callable[[torch.Tensor], torch.Tensor] | None = None) -> Batch:
        """Whiten s and s′, by the statistics so far unless `see` does it."""
        see = see or (self._whitening if self.whiten else torch.Tensor.float)
        return Batch(None if batch.x is None else see(batch.x), batch.a, see(batch.y))

    def _only(self, batch: Batch, valid: np.ndarray | None) -> Batch:
        """Return the valid rows, by index, because a mask would make the host wait for the device."""
        if valid is None:
            return batch
        rows = torch.from_numpy(np.flatnonzero(valid)).to(self._device)
        return batch.map(lambda part: part[rows])

    def _flat(self, part: Any, shape: tuple[int, ...]) -> Any:
        """Return a (T, B, …) block as (T·B, …) rows."""

        def flat(array: Any) -> Any:
            if tuple(array.shape[:2]) != shape:
                raise ValueError(
                    f"{self.name}.of_rollout takes (T, B, …) blocks: dones have shape {shape}, "
                    f"and there is an array of shape {tuple(array.shape)}"
                )
            return array.reshape(shape[0] * shape[1], *array.shape[2:])

        return map_parts(flat, part)

    # ------------------------------------------------------------------ a rollout, segment by segment

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
        kept = self._only(batch, None if rows.valid is None else rows.valid.ravel())
        with torch.inference_mode():
            novelty = self.method.novelty(self.networks, *self._seen_in_turn(batch, kept, rows.valid, n))
            novelty = novelty.reshape(n, len(batch.y) // n, *novelty.shape[1:])
            if self.method.memory is not None:
                novelty = self.method.memory.pay(novelty, rows)
        if self._learning.add(kept, n if rows.valid is None else int(rows.valid.any(axis=1).sum())):
            for part in self._learning.draw():
                self._step(part)
        return novelty

    def _seen_in_turn(self, batch: Batch, kept: Batch, valid: np.ndarray | None, n: int) -> Batch:
        """Whiten each of n steps by the steps before it, and take them into account."""
        if not self.whiten:
            return self._seen(batch)
        if n == 1:
            seen = self._seen(batch)
            self._whitening.add(kept.y)
            return seen
        flags = None if valid is None else torch.from_numpy(valid).to(self._device)
        B = len(batch.y) // n
        mean, var = self._whitening.add_steps(
            batch.y.reshape(n, B, *batch.y.shape[1:]), np.full(n, B) if valid is None else valid.sum(axis=1), flags
        )
        return self._seen(batch, lambda x: whitened(x.reshape(n, B, *x.shape[1:]), mean, var).flatten(0, 1))

    # ------------------------------------------------------------------ learning

    def _step(self, batch: Batch) -> torch.Tensor:
        loss = self.method.loss(self.networks, *self._seen(batch))
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return loss.detach()

    def _refuse_not_finite(self, batch: Batch, valid: np.ndarray | None, B: int) -> None:
        """Refuse valid rows that are not finite, before anything changes; there are B of each step."""
        floats = [part for part in batch if part is not None and part.dtype.is_floating_point]
        if not floats:
            return
        good = torch.stack([torch.isfinite(part).flatten(1).all(dim=1) for part in floats]).all(dim=0)
        bad = ~good if valid is None else ~good & torch.from_numpy(valid).to(good.device)
        if bool(bad.any()):
            k = int(bad.nonzero()[0])
            step = f" in step {k // B} of the rollout" if len(bad) > B else ""
            raise ValueError(f"{self.name}: the observation or action of environment {k % B}{step} is not finite")

    # ------------------------------------------------------------------ saving

    def _sizes(self) -> Mapping[str, Any]:
        return {**self.method.sizes, **({} if self._actions is None else {"actions": self._actions.size})}

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"shape": np.array(self._shape or (), dtype=np.int64), **self._learning.arrays()}
        arrays |= {} if self._actions is None else self._actions.arrays()
        if self._shape is not None:
            arrays |= {f"network.{key}": value.cpu().numpy() for key, value in self.networks.state_dict().items()}
            arrays |= {"mean": self._whitening.mean.cpu().numpy(), "var": self._whitening.var.cpu().numpy()}
            arrays |= {"rows": np.array(self._whitening.count)}
            for i, state in self._optimiser.state_dict()["state"].items():
                arrays |= {f"optimiser.{i}.{key}": value.cpu().numpy() for key, value in state.items()}
        return arrays if self.method.memory is None else arrays | self.method.memory.arrays()

    @_with_gradients
    def _restore(self, arrays: dict[str, np.ndarray], path: str) -> None:
        shape = tuple(arrays["shape"].tolist())
        if self._shape is not None and shape and shape != self._shape:
            raise ValueError(
                f"{path} holds a {self.name} for observations of shape {shape}, this one sees {self._shape}"
            )
        if self._actions is None and "action_space" in arrays:
            self._actions = ActionEncoder.restored(self.name, arrays, self._device)
        self._learning.restore(arrays, self._device)
        self._shape = None
        if shape:
            self._build(shape)
            self._restore_networks(arrays)
        if self.method.memory is not None:
            self.method.memory.restore(arrays)

    def _restore_networks(self, arrays: dict[str, np.ndarray]) -> None:
        def under(prefix: str) -> dict[str, torch.Tensor]:
            named = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
            return {key: torch.from_numpy(value) for key, value in named.items()}

        self.networks.load_state_dict(under("network."))
        self._whitening.mean = torch.as_tensor(arrays["mean"], device=self._device)
        self._whitening.var = torch.as_tensor(arrays["var"], device=self._device)
        self._whitening.count = int(arrays["rows"])
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in under("optimiser.").items():
            i, part = key.split(".")
            state.setdefault(int(i), {})[part] = value
        self._optimiser.load_state_dict({**self._optimiser.state_dict(), "state": state})
