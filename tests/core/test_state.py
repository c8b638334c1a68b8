"""A state, saved and loaded, goes on as if nothing had happened; the file holds arrays and text, nothing to run."""

import gc
import json
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import payback

from .cases import TRANSFORMS, assert_close, quiet, random_stream
from .libraries import LIBRARIES, leaves, rollouts, wide

pytestmark = quiet

KINDS = ("match_at_end", "match_when", "match_after-0", "match_after-2", "match_geometric", "pbim", "fading")
"""One of each kind of state."""


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("which", KINDS)
@pytest.mark.parametrize("stepped", [False, True], ids=["after rollouts", "after steps"])
def test_training_goes_on_from_a_file(name: str, which: str, stepped: bool, tmp_path: Path):
    transform, stream, library = TRANSFORMS[which], random_stream(1, 20, 3, settle=True), LIBRARIES[name]
    with wide(name):
        state = library.init(transform, stream)
        if stepped:
            state, _ = library.step(transform, state, library.stream(stream))
        else:
            state, _ = rollouts(name, transform, state, stream, pieces=1)
        payback.save_state(tmp_path / "state", state)
        loaded = payback.load_state(tmp_path / "state")
        assert_same_state(loaded, state)
        expected = library.step(transform, state, library.stream(stream))[1]
        assert_close(library.step(transform, loaded, library.stream(stream))[1], expected, 0)


def assert_same_state(loaded: Any, state: Any) -> None:
    assert type(loaded) is type(state)
    if isinstance(state, tuple):
        assert len(loaded) == len(state)
        for new, old in zip(loaded, state, strict=True):
            assert_same_state(new, old) if isinstance(old, tuple) else assert_same_array(new, old)


def assert_same_array(new: Any, old: Any) -> None:
    assert type(new) is type(old) or isinstance(old, np.generic)
    assert new.dtype == old.dtype
    assert_close(new, old, 0)


@pytest.mark.parametrize("name", LIBRARIES)
def test_float32_stays_float32(name: str, tmp_path: Path):
    shaping, example = payback.match_after(0.9, 2), np.zeros(3, np.float32)
    state = shaping.init(LIBRARIES[name].array(example))
    payback.save_state(tmp_path / "state", state)
    assert payback.load_state(tmp_path / "state").loans.dtype == state.loans.dtype


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_bfloat16_comes_back(name: str, tmp_path: Path):
    example = torch.ones(2, dtype=torch.bfloat16) if name == "torch" else jnp.ones(2, jnp.bfloat16)
    state = payback.match_after(0.9, 1).init(example)
    payback.save_state(tmp_path / "state", state)
    assert payback.load_state(tmp_path / "state").loans.dtype == state.loans.dtype


def test_a_loaded_center_can_be_merged(tmp_path: Path):
    subtract, no = payback.center(), np.zeros(2, bool)
    common = subtract.init(np.zeros(2))
    worker, _ = subtract.update(common, np.array([1.0, 3.0]), no)
    payback.save_state(tmp_path / "state", worker)
    assert float(payback.merge_centers(common, payback.load_state(tmp_path / "state")).mean) == 2.0


def test_a_state_of_ones_own(tmp_path: Path):
    """Tuples, lists, dicts, numbers, text and None, of any library's arrays."""
    parts = [np.arange(3), (torch.ones(2), jnp.zeros(1))]
    state = {"count": 3, "parts": parts, "name": "mine", "none": None, "on": True}
    payback.save_state(tmp_path / "state", state)
    loaded = payback.load_state(tmp_path / "state")
    assert list(loaded) == list(state)
    assert (loaded["count"], loaded["name"], loaded["none"], loaded["on"]) == (3, "mine", None, True)
    assert isinstance(loaded["parts"], list)
    assert isinstance(loaded["parts"][1], tuple)
    assert [type(leaf) for leaf in leaves((loaded["parts"][0], *loaded["parts"][1]))] == [
        np.ndarray,
        torch.Tensor,
        type(jnp.zeros(1)),
    ]


def test_the_file_holds_no_pickle(tmp_path: Path):
    payback.save_state(tmp_path / "state.npz", payback.grm(0.99, 3).init(np.zeros(2)))
    with np.load(tmp_path / "state.npz", allow_pickle=False) as file:
        assert "layout" in file.files
        assert not any(file[name].dtype.hasobject for name in file.files)
    source = Path(payback.__file__).with_name("core").joinpath("state.py").read_text()
    assert "import pickle" not in source
    assert "allow_pickle=True" not in source


def test_the_path_is_used_as_given_and_replaced_whole(tmp_path: Path):
    match = payback.match_at_end(0.99)
    for value in (1.0, 2.0):
        state, _ = match.update(match.init(np.zeros(1)), np.array([value]), np.array([False]))
        payback.save_state(str(tmp_path / "state"), state)
    assert os.listdir(tmp_path) == ["state"]
    assert float(payback.load_state(tmp_path / "state").lent[0]) == 2.0


class Foreign(NamedTuple):
    """A NamedTuple that payback does not know."""

    x: Any


def test_a_namedtuple_of_ones_own_comes_back_with_an_example(tmp_path: Path):
    state = (Foreign(np.arange(3.0)), {"inner": Foreign(torch.ones(2))})
    payback.save_state(tmp_path / "state", state)
    loaded = payback.load_state(tmp_path / "state", like=state)
    assert type(loaded[0]) is type(loaded[1]["inner"]) is Foreign
    assert_same_array(loaded[0].x, state[0].x)
    assert_same_array(loaded[1]["inner"].x, state[1]["inner"].x)
    with pytest.raises(ValueError, match=r"holds a Foreign.*like="):
        payback.load_state(tmp_path / "state")
    for like in (state[0], (Foreign(np.zeros(4)), state[1]), (state[1], state[0])):
        with pytest.raises(ValueError, match="holds the state of another transform"):
            payback.load_state(tmp_path / "state", like=like)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((np.zeros(1), object()), "cannot save a object: hold your state in arrays of numbers"),
        (np.array([object()]), "cannot save a ndarray: hold your state in arrays of numbers"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_the_old_file_stays(state: Any, message: str, tmp_path: Path):
    good = payback.match_after(0.9, 1).init(np.ones(2))
    payback.save_state(tmp_path / "state", good)
    with pytest.raises(TypeError, match=message):
        payback.save_state(tmp_path / "state", state)
    assert os.listdir(tmp_path) == ["state"]
    assert_same_state(payback.load_state(tmp_path / "state"), good)


@pytest.mark.parametrize("broken", ["write", "rename"])
def test_a_write_that_fails_leaves_the_old_file_whole(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    good = payback.match_after(0.9, 1).init(np.ones(2))
    payback.save_state(tmp_path / "state", good)

    def disk_is_full(file: Any, *args: Any, **arrays: Any) -> None:
        if broken == "write":
            file.write(b"half of it")
        raise OSError("No space left on device")

    other = payback.match_after(0.9, 7).init(np.ones(2))
    with monkeypatch.context() as patch:
        patch.setattr(*(np, "savez") if broken == "write" else (os, "replace"), disk_is_full)
        with pytest.raises(OSError, match="No space left"):
            payback.save_state(tmp_path / "state", other)
    assert os.listdir(tmp_path) == ["state"]
    assert_same_state(payback.load_state(tmp_path / "state"), good)


# ------------------------------------------------------------------ damaged files


def damaged_files(good: bytes) -> dict[str, bytes]:
    middle = len(good) // 2
    return {
        "empty": b"",
        "text": b"rewards,dones\n1,0\n",
        "cut short": good[:middle],
        "a byte turned": good[:150] + bytes([good[150] ^ 0xFF]) + good[151:],
    }


@pytest.mark.parametrize("damage", ["empty", "text", "cut short", "a byte turned"])
def test_a_damaged_file_is_refused(damage: str, tmp_path: Path):
    """And closed: a file left open would be a ResourceWarning, which is an error here."""
    path = tmp_path / "state.npz"
    payback.save_state(path, payback.match_after(0.9, 3).init(np.ones(4)))
    path.write_bytes(damaged_files(path.read_bytes())[damage])
    with pytest.raises(ValueError, match=r"state\.npz is not a state that save_state wrote, or is damaged"):
        payback.load_state(path)
    gc.collect()


def test_another_npz_and_a_pickle_are_refused(tmp_path: Path):
    np.savez(tmp_path / "weights.npz", w=np.ones(3))
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}]), allow_pickle=True)
    for name in ("weights.npz", "objects.npy"):
        with pytest.raises(ValueError, match="is not a state that save_state wrote, or is damaged"):
            payback.load_state(tmp_path / name)


def write(path: Path, layout: Any, **arrays: np.ndarray) -> None:
    np.savez(path, layout=np.array(json.dumps(layout)), allow_pickle=False, **arrays)


def test_a_later_format_is_refused(tmp_path: Path):
    write(tmp_path / "state.npz", {"format": 99, "state": {"kind": "plain", "value": 1}})
    with pytest.raises(ValueError, match="a state of format 99, this version reads 2; use the payback that wrote"):
        payback.load_state(tmp_path / "state.npz")


@pytest.mark.parametrize(
    "state", [{"kind": "array", "name": "a0", "library": "numpy"}, {"kind": "NoSuch", "items": []}]
)
def test_a_file_with_parts_missing_is_refused(state: Any, tmp_path: Path):
    write(tmp_path / "state.npz", {"format": 2, "state": state})
    with pytest.raises(ValueError, match="is not a state that save_state wrote, or is damaged"):
        payback.load_state(tmp_path / "state.npz")


def test_the_damage_is_real(tmp_path: Path):
    """The turned byte lies in an array, not in padding: the plain reader sees it too."""
    path = tmp_path / "state.npz"
    payback.save_state(path, payback.match_after(0.9, 3).init(np.ones(4)))
    path.write_bytes(damaged_files(path.read_bytes())["a byte turned"])
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is not None


class OwnTerms(NamedTuple):
    """A user's state, one of whose fields has the name of one of ours."""

    terms: Any


def test_a_field_of_ones_own_may_be_called_terms(tmp_path: Path):
    payback.save_state(tmp_path / "state", OwnTerms(np.array([3.0])))
    assert payback.load_state(tmp_path / "state", like=OwnTerms(np.array([0.0]))).terms == 3
    payback.save_state(tmp_path / "ours", payback.match_geometric(0.9, 0.5).init(np.zeros(1)))
    with pytest.raises(ValueError, match=r"its terms \(γ and the shares\) are \[0.9, 0.5\] there and \[0.9, 0.4\]"):
        payback.load_state(tmp_path / "ours", like=payback.match_geometric(0.9, 0.4).init(np.zeros(1)))
