"""Long cliff walking (`sec:lw`): the same where the goal is far away and random steps hardly find it.

A 4×50 grid, 10,000 episodes of at most 100 moves, eight schemes, ten seeds. The paper prints 52 steps and a return
of 49 for the shortest path; the grid it describes has one of 51 moves that returns 50.
"""

from payback_lab.experiments.cliff.config import ABLATIONS
from payback_lab.experiments.cliff.experiment import NOTES
from payback_lab.experiments.cliff.walking import CliffWalking
from payback_lab.experiments.long_cliff.claims import CLAIMS
from payback_lab.experiments.long_cliff.config import LongQLearning
from payback_lab.experiments.long_cliff.printed import PAPER

EXPERIMENT = CliffWalking(
    name="long-cliff",
    title="Long Cliff Walking",
    config=LongQLearning,
    ablations=ABLATIONS,
    notes=(
        "The shortest path of a 4×50 grid takes 51 moves and returns 100 − 50 = 50; the paper prints 52 steps and 49.",
        "The step size is 0.1, on the short cliff 0.05. The order of training returns was seen to change with it.",
        *NOTES,
    ),
    paper=PAPER,
    claimed=CLAIMS,
)
