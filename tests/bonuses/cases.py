"""Every bonus by name, fresh and small, for the tests that all of them must pass."""

from payback.bonuses import Count, EpisodicCount, Recency, SimHash, episodic
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD

SMALL = {"width": 16, "latent": 8, "learn_every": 3, "share": 0.5, "batch_size": 4, "warmup": 12}
COUNTS = {
    "EpisodicCount": lambda: EpisodicCount(),
    "EpisodicCount, root": lambda: EpisodicCount(root=True, key=lambda obs: int(obs.argmax())),
    "Count": lambda: Count(),
    "SimHash": lambda: SimHash(bits=16),
    "Recency": lambda: Recency(),
    "episodic Count": lambda: episodic(Count(), root=True),
}
NETWORKS = {
    "RND": lambda **options: RND(**SMALL | options),
    "ICM": lambda **options: ICM(3, **SMALL | options),
    "RIDE": lambda **options: RIDE(3, **SMALL | options),
    "NovelD": lambda **options: NovelD(**SMALL | options),
    "E3B": lambda **options: E3B(3, **SMALL | options),
    "Disagreement": lambda **options: Disagreement(3, **SMALL | options),
}
FRESH = {**COUNTS, **NETWORKS, "episodic RND": lambda **options: episodic(NETWORKS["RND"](**options))}

STILL = {"learn_every": 0, "normalise": False, "whiten": False}
EPISODIC = {
    "EpisodicCount": COUNTS["EpisodicCount"],
    "EpisodicCount, root": COUNTS["EpisodicCount, root"],
    **{name: lambda name=name: NETWORKS[name](**STILL) for name in ("RIDE", "NovelD", "E3B")},
    "episodic RND": lambda: FRESH["episodic RND"](**STILL),
}
"""Those whose memory lasts one episode, with no other memory: no statistics, no training."""
