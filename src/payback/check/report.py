"""`CheckReport`: what `check_transform` checked, and on how many streams."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from payback.check.stream import Stream, episodes_of


@dataclass(frozen=True)
class CheckReport:
    """What `check_transform` checked. A fault that only shows beyond it is not detected.

    >>> print(CheckReport(("zero sum", "causality"), streams=2, steps=1200, episodes=3, longest_episode=1000,
    ...                   most_environments=2, libraries=("numpy",), dtypes=("float64",), seconds=0.4))
    zero sum, causality: no violation in 2 streams of 1,200 steps (3 episodes, the longest of 1,000 steps, up to 2
    environments; numpy, float64; 0.4 s)
    """

    properties: tuple[str, ...] = ()
    """The properties that were checked, each on every stream that it concerns."""
    streams: int = 0
    steps: int = 0
    """Valid rows, over all environments."""
    episodes: int = 0
    """Finished episodes."""
    longest_episode: int = 0
    most_environments: int = 0
    libraries: tuple[str, ...] = ()
    """The array libraries: "numpy", "torch", "jax"."""
    dtypes: tuple[str, ...] = ()
    """The dtypes of the rewards."""
    refused: tuple[str, ...] = ()
    """Inputs that the shaper refuses with an error, which is right but leaves nothing to check."""
    pays_nothing: bool = False
    """Whether every shaped reward was 0."""
    seconds: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        refused = f"; refused: {', '.join(self.refused)}" if self.refused else ""
        nothing = "; every shaped reward is 0, so the bonus has no effect; use a delay of at least 1"
        return (
            f"{', '.join(self.properties)}: no violation in {self.streams:,} streams of {self.steps:,} steps "
            f"({self.episodes:,} episodes, the longest of {self.longest_episode:,} steps, up to "
            f"{self.most_environments:,} environments; {', '.join((*self.libraries, *self.dtypes))}; "
            f"{self.seconds:.1f} s){refused}{nothing if self.pays_nothing else ''}"
        )

    def with_stream(self, stream: Stream, library: str, dtype: str) -> CheckReport:
        """Return the report after one more stream."""
        index = episodes_of(stream)
        return replace(
            self,
            streams=self.streams + 1,
            steps=self.steps + len(index.step),
            episodes=self.episodes + int(np.sum(index.finished)),
            longest_episode=max(self.longest_episode, index.longest),
            most_environments=max(self.most_environments, stream.rewards.shape[1]),
            libraries=tuple(dict.fromkeys((*self.libraries, library))),
            dtypes=tuple(dict.fromkeys((*self.dtypes, dtype))),
        )

    def with_refused(self, *refused: str) -> CheckReport:
        """Return the report after more inputs were refused."""
        return replace(self, refused=tuple(dict.fromkeys((*self.refused, *refused))))
