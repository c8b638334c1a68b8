import numpy as np
import pytest

from payback import InvarianceError
from payback.check.causal import check_causal

X = np.random.default_rng(0).normal(size=(16, 3, 4)).astype(np.float32)


def novelty(x):
    """Distance to the nearest *earlier* state of the same environment."""
    out = np.zeros(x.shape[:2])
    for t in range(1, len(x)):
        out[t] = np.linalg.norm(x[:t] - x[t], axis=-1).min(axis=0)
    return out


def neighbours(x):
    """RE3-like: distance to the nearest state of the whole rollout."""
    distance = np.linalg.norm(x[:, None] - x[None], axis=-1) + 1e9 * np.eye(len(x))[:, :, None]
    return distance.min(axis=1)


def test_causal_rewards_pass() -> None:
    check_causal(novelty, X)
    check_causal(lambda r: np.abs(r["x"]).sum(-1) * r["done"], {"x": X, "done": np.arange(48).reshape(16, 3) % 5})


@pytest.mark.parametrize(
    "fn",
    [
        neighbours,
        lambda x: (novelty(x) - novelty(x).mean()) / novelty(x).std(),
        lambda x: novelty(x) / novelty(x).max(),
        lambda x: np.abs(x).sum(-1)[::-1].cumsum(0)[::-1],
        lambda x: np.abs(np.diff(x, axis=0, append=x[-1:])).sum(-1),
        lambda x: novelty(x) + (np.arange(16) == 14)[:, None] * x[15, :, 0],
    ],
    ids=["neighbours", "batch norm", "max", "returns", "next state", "one step ahead at the end"],
)
def test_rewards_that_look_ahead_are_caught(fn) -> None:
    with pytest.raises(InvarianceError, match="depends on what comes after") as caught:
        check_causal(fn, X)
    assert caught.value.paid != caught.value.owed


DONE = np.random.default_rng(1).random((16, 3)) < 0.2
ACTIONS = np.random.default_rng(2).integers(0, 5, (16, 3))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32])
@pytest.mark.parametrize("ends", [[], [4], [4, 9, 15]], ids=["no end", "one end", "three ends"])
@pytest.mark.parametrize(
    "peek",
    [
        lambda r: np.abs(r["x"]).sum(-1) * (1 - np.roll(r["done"], -1, axis=0).astype(float)),
        lambda r: np.abs(r["x"]).sum(-1) + np.append(r["done"][1:], r["done"][-1:], axis=0).any(1, keepdims=True),
        lambda r: np.abs(r["x"]).sum(-1) + np.roll(r["done"], -1, axis=0) * (np.arange(16) == 7)[:, None],
        lambda r: np.abs(r["x"]).sum(-1) + r["done"].astype(float).sum(0),
    ],
    ids=["paid unless the next step ends", "any ends next", "at one step only", "how many end"],
)
def test_a_bonus_that_knows_the_coming_end_is_caught(peek, ends, dtype) -> None:
    done = np.zeros((16, 3), dtype=bool)
    done[ends] = True
    with pytest.raises(InvarianceError, match="depends on what comes after"):
        check_causal(peek, {"x": X, "done": done.astype(dtype)})


def test_a_bonus_that_knows_the_next_action_is_caught_at_the_last_step_too() -> None:
    def peek(r):
        bonus = np.abs(r["x"]).sum(-1).astype(float)
        bonus[14] += r["action"][15]
        return bonus

    with pytest.raises(InvarianceError):
        check_causal(peek, {"x": X, "action": ACTIONS})


def test_a_bonus_of_this_steps_end_and_action_passes() -> None:
    check_causal(lambda r: np.abs(r["x"]).sum(-1) * r["done"] + r["action"], {"x": X, "done": DONE, "action": ACTIONS})


def test_it_says_where_and_by_how_much() -> None:
    with pytest.raises(InvarianceError) as caught:
        check_causal(lambda x: np.arange(8.0) + (np.arange(8) == 2) * x[7], np.arange(8.0), cuts=[4])
    assert (caught.value.step, caught.value.owed) == (2, 9.0)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_rollouts_of_other_array_libraries(library: str) -> None:
    x = pytest.importorskip("jax.numpy" if library == "jax" else library).asarray(X)
    check_causal(lambda x: abs(x).sum(-1), x)
    with pytest.raises(InvarianceError):
        check_causal(lambda x: abs(x).sum(-1) / x.std(), x)


def test_bad_input_gets_a_sentence() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="same rollout"):
        check_causal(lambda x: rng.normal(size=len(x)), X)
    with pytest.raises(ValueError, match="at least 2 steps"):
        check_causal(lambda x: x, np.zeros(1))
    with pytest.raises(ValueError, match="time comes first"):
        check_causal(lambda x: x.sum(), X)
    with pytest.raises(ValueError, match="one first axis"):
        check_causal(lambda x: x[0], (np.zeros(3), np.zeros(4)))
