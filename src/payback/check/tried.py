"""How much a check has tried: what passed is known to hold on this, and on no more."""

from __future__ import annotations

from dataclasses import dataclass

from payback.check.stream import Stream, episodes_of


@dataclass(frozen=True)
class Tried:
    """What `check_transform` has tried. A fault that shows only beyond it is not seen.

    >>> print(Tried(streams=2, steps=1200, episodes=3, longest_episode=1000, most_environments=2, dtypes=("float64",)))
    2 streams of 1,200 steps in 3 finished episodes, the longest of 1,000 steps, up to 2 environments; float64
    """

    streams: int = 0
    steps: int = 0
    """Valid rows, over all environments."""
    episodes: int = 0
    """Finished ones."""
    longest_episode: int = 0
    most_environments: int = 0
    dtypes: tuple[str, ...] = ()
    """The dtypes of the rewards."""
    refused: tuple[str, ...] = ()
    """Kinds of input that the shaper refuses with an error, which is right, but leaves nothing to check."""

    def __str__(self) -> str:
        text = (
            f"{self.streams:,} streams of {self.steps:,} steps in {self.episodes:,} finished episodes, the longest of "
            f"{self.longest_episode:,} steps, up to {self.most_environments:,} environments; {', '.join(self.dtypes)}"
        )
        return text + (f"; refused: {', '.join(self.refused)}" if self.refused else "")


def with_stream(tried: Tried, stream: Stream, dtype: str) -> Tried:
    """Return what was tried, and this stream."""
    cut = episodes_of(stream)
    return Tried(
        tried.streams + 1,
        tried.steps + len(cut.step),
        tried.episodes + int(cut.finished.sum()),
        max(tried.longest_episode, cut.longest),
        max(tried.most_environments, stream.rewards.shape[1]),
        tried.dtypes if dtype in tried.dtypes else (*tried.dtypes, dtype),
        tried.refused,
    )
