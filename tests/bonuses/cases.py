"""Every bonus by name, fresh and small, for the tests that all of them must pass."""

from payback.bonuses import Count, EpisodicCount, Recency, SimHash

FRESH = {
    "EpisodicCount": lambda: EpisodicCount(),
    "EpisodicCount, root": lambda: EpisodicCount(root=True, key=lambda obs: int(obs.argmax())),
    "Count": lambda: Count(),
    "SimHash": lambda: SimHash(bits=16),
    "Recency": lambda: Recency(),
}
EPISODIC = {"EpisodicCount", "EpisodicCount, root"}
"""Those whose memory lasts one episode."""
