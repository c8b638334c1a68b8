"""The committed runs of one study, as its page reads them."""

from functools import cached_property
from pathlib import Path

from payback_lab.experiments import load
from payback_lab.experiments.arena.finished import Finished
from payback_lab.experiments.studies import depth, learned, safe_range
from payback_lab.experiments.studies.analysis import SafeRange, safe_ranges
from payback_lab.experiments.studies.study import Study, committed

NONE_YET = "Not measured yet."


class Results:
    """Hold the committed runs of one study."""

    def __init__(self, name: str, summaries: Path) -> None:
        """Read them; a study whose cells depend on another one's runs is asked again."""
        study = load(name)
        assert isinstance(study, Study)
        self.summaries = summaries
        self.study: Study = study.informed(summaries)
        self.finished: Finished = committed(summaries, self.study)
        self.made = sum(map(len, self.finished.values()))
        self.planned = max(sum(cell.seeds for cell in self.study.cells), SIZES[name])

    @cached_property
    def ranges(self) -> list[SafeRange]:
        """Return every method's row of the safe range."""
        return safe_ranges(self.finished)

    @cached_property
    def choices(self) -> learned.Choices:
        """Return what is decided of the learned bonuses."""
        return learned.choices(self.summaries, self.finished)

    def so_far(self) -> str:
        """Say how many of the planned runs are in."""
        if not self.made:
            return f"**{NONE_YET}** {self.planned} runs are planned."
        if self.made >= self.planned:
            return f"All {self.planned} runs are in."
        return f"{self.made} of {self.planned} runs are in; the others may change the results below."


SIZES = {
    "safe-range": 3 * len(safe_range.CELLS),
    "depth": 3 * depth.COMPLETE,
    "learned": len(learned.BONUSES) * 3 * (len(learned.ALPHAS) + 3 * len(learned.TASKS)),
}
"""How many runs each study has once all of them are decided."""
