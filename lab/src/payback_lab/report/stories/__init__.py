"""How each experiment is told on the first screen, by its name; one without a story of its own is told plainly."""

from payback_lab.report.stories import arena, cliff, delay, doorkey, long_cliff, plain, reach
from payback_lab.report.story import Story

STORIES: dict[str, Story] = {
    "cliff": cliff.STORY,
    "long-cliff": long_cliff.STORY,
    "doorkey": doorkey.STORY,
    "reach": reach.STORY,
    "delay": delay.STORY,
    "arena": arena.STORY,
}


def story_of(experiment: str) -> Story:
    """Return an experiment's story."""
    return STORIES.get(experiment, plain.STORY)
