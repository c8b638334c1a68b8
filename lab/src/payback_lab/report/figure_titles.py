"""What the single figures of the runs are called, those that say most first."""

from payback_lab.report.charts.final_figures import FINALS

MAIN = ("optimal", "mean_length", "greedy_return", "settled_step", "greedy_length", "sampled_length")
"""The figures that are shown first, in this order, as far as an experiment has them."""
TITLES = {
    **FINALS,
    "optimal": "seeds whose final policy is optimal",
    "final_return": "return at the end of training",
    "final_length": "length at the end of training (moves)",
    "steps": "steps of training",
    "law_residual": "law residual (0: all is repaid)",
    "mean_length": "N̄: length at the end of training (steps)",
    "length_deviation": "σ: its deviation over episodes",
    "converged": "converged, as the paper defines it",
    "convergence_step": "T: first step below N̄",
    "smooth_convergence_step": "T of the 100-point mean",
    "truncated_share": "share of episodes cut off at the end",
    "sampled_solved": "share solved, acting as trained",
    "greedy_solved": "share solved without exploration",
    "largest_repayment": "largest single repayment",
    "trained_steps": "steps of training",
    "solved_step": "step from which on 90 % are solved",
    "first_solved_step": "first step at which 90 % are solved",
    "mean_training_solved": "mean share solved over training",
    "final_training_solved": "share solved at the end of training",
    "final_training_length": "length at the end of training (steps)",
    "sampled_solved_length": "length of the solved, acting as trained",
    "mean_bonus": "mean of F per step",
    "mean_shaped": "mean of F' per step",
    "mean_average": "mean of F̄ per step",
}
"""Key → title; a key that is not here is shown as it is."""


def in_order_of_interest(keys: list[str]) -> list[str]:
    """Put the figures that say most first.

    >>> in_order_of_interest(["law_residual", "settled_step", "mean_length"])
    ['mean_length', 'settled_step', 'law_residual']
    """
    return sorted(keys, key=lambda key: MAIN.index(key) if key in MAIN else len(MAIN))
