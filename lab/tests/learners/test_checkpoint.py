"""A checkpoint comes back to the bit, or is refused in one sentence and left as it is."""

import os
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback_lab.learners.checkpoint import load_checkpoint, save_checkpoint
from payback_lab.user_error import UserError


class Small(NamedTuple):
    """A state with what the learner's has: nesting, several types, scalars, empty places."""

    key: jax.Array
    updates: jax.Array
    inner: tuple


def small(seed: int = 0) -> Small:
    rng = np.random.default_rng(seed)
    numbers = jnp.asarray(rng.normal(size=(3, 2)).astype(np.float32)).at[0, 0].set(-0.0).at[1, 1].set(np.nan)
    key = jax.random.key_data(jax.random.key(seed))
    return Small(key, jnp.int32(seed), ((numbers, ()), {"alive": jnp.array([True, False])}))


COLUMNS = {"steps": np.arange(12, dtype=np.int32), "window_mean": np.full(12, np.nan, np.float32)}
ABOUT = {"alpha": 0.1 + 0.2, "ablation": None, "scheme": "grm-10", "seed": 3, "learner_version": 1}


def bits(state, columns: dict[str, np.ndarray]) -> list[tuple]:
    """Return type, shape and bytes of everything."""
    leaves, form = jax.tree.flatten(state)
    arrays = [*map(np.asarray, leaves), *(columns[name] for name in sorted(columns))]
    return [(str(form), sorted(columns)), *((a.dtype, a.shape, a.tobytes()) for a in arrays)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.npz"
    save_checkpoint(path, small(7), COLUMNS, ABOUT)
    return path


def test_what_is_saved_is_loaded_to_the_bit(path: Path):
    assert bits(*load_checkpoint(path, small(), ABOUT)) == bits(small(7), COLUMNS)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_later_checkpoint_takes_the_place_of_the_earlier(path: Path):
    save_checkpoint(path, small(8), COLUMNS, ABOUT)
    assert bits(*load_checkpoint(path, small(), ABOUT)) == bits(small(8), COLUMNS)


def test_a_save_that_fails_leaves_the_earlier_one_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, small(8), COLUMNS, ABOUT)
    monkeypatch.undo()
    assert bits(*load_checkpoint(path, small(), ABOUT)) == bits(small(7), COLUMNS)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def refused(path: Path, like=None, about=None) -> str:
    """Load what must be refused; return the sentence. The file stays as it is."""
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"^The checkpoint .*[^.]\.$") as caught:
        load_checkpoint(path, small() if like is None else like, ABOUT if about is None else about)
    assert path.read_bytes() == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({**ABOUT, "alpha": 0.3}, "alpha was 0.30000000000000004, now 0.3"),
        ({**ABOUT, "learner_version": 2}, "learner_version was 1, now 2"),
        ({**ABOUT, "ablation": "entropy-0.001"}, "ablation was None, now entropy-0.001"),
        ({**ABOUT, "size": 8}, "size was None, now 8"),
        ({name: value for name, value in ABOUT.items() if name != "seed"}, "seed was 3, now None"),
    ],
)
def test_one_of_another_run_is_refused(path: Path, about: dict, words: str):
    said = refused(path, about=about)
    assert f"is of another run ({words}): give the settings it was made with, another --out, or delete it." in said


def test_one_of_another_form_is_refused(path: Path):
    state = small()
    for other in (
        state._replace(updates=jnp.float32(0)),
        state._replace(key=jnp.zeros(3, jnp.uint32)),
        state._replace(inner=(*state.inner, jnp.zeros(1))),
    ):
        assert "does not fit this version of the learner: delete it." in refused(path, like=other)


def test_a_cut_one_is_refused_wherever_it_is_cut(path: Path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 29), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert "is damaged: delete it to begin this run again." in refused(path)


def test_a_flipped_byte_in_the_data_is_refused_or_means_nothing(path: Path):
    """Zip files hold bytes that nobody reads, such as dates."""
    whole = path.read_bytes()
    refusals = 0
    for place in range(0, whole.index(b"PK\x01\x02"), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            assert bits(*load_checkpoint(path, small(), ABOUT)) == bits(small(7), COLUMNS)
        except UserError as error:
            refusals += 1
            assert str(error) == f"The checkpoint {path} is damaged: delete it to begin this run again."  # noqa: PT017
    assert refusals > 0.8 * place / 3


@pytest.mark.parametrize("content", [b"", b"PK", b"no checkpoint at all", b"\x93NUMPY\x01\x00"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(content)
    assert "is damaged" in refused(path)


def test_pickles_are_not_opened(tmp_path: Path):
    path = tmp_path / "checkpoint.npz"
    np.savez(path, about=np.array([{"a": 1}], dtype=object))
    assert "is damaged" in refused(path)


def test_a_missing_one_is_missing_not_damaged(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none.npz", small(), ABOUT)
