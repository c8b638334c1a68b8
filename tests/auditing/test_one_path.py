"""Arrays, files of every format and a recorder's folder go one way, so that equal logs give equal audits."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import payback
from payback import audit, audit_file
from payback.auditing.audit import AuditOptions, audit_log
from payback.auditing.rows import Log

from .test_log_file import write


def same(one, other) -> None:
    assert (one.ok, one.rows, one.broken, one.unjudged) == (other.ok, other.rows, other.broken, other.unjudged)
    assert (one.unfinished, one.invalid_rows_paid, one.causes) == (
        other.unfinished,
        other.invalid_rows_paid,
        other.causes,
    )
    assert one.notes == other.notes
    for mine, theirs in zip(one.episodes, other.episodes, strict=True):
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        else:
            assert mine.tolist() == theirs.tolist()
    assert [(x.environment, x.episode, x.cause, x.step) for x in one.leaks] == [
        (x.environment, x.episode, x.cause, x.step) for x in other.leaks
    ]


@st.composite
def logs(draw):
    """Columns of any log: lawful or not, with any ids, invalid rows, with and without F."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    B, T = draw(st.integers(1, 4)), draw(st.integers(1, 60))
    gamma = draw(st.sampled_from([0.5, 0.9, 0.99, 1.0]))
    F, dones = rng.random((T, B)), rng.random((T, B)) < draw(st.sampled_from([0.05, 0.3, 1.0]))
    dones[-1, 0] = True
    match = payback.match_after(gamma, 3)
    _, shaped = payback.shape_rollout(match, match.init(F[0]), F, dones)
    faults = [shaped, F, np.where(dones, F, shaped), np.clip(shaped, -0.5, 0.5), shaped + 0.1, shaped.round(3)]
    ids = np.array(draw(st.sampled_from([[0, 1, 2, 3], ["a", "b", "[/]", "é"], [10, 9, 8, 7]])))
    table = {
        "shaped": faults[draw(st.integers(0, len(faults) - 1))].reshape(-1),
        "done": dones.reshape(-1),
        "env": np.tile(ids[:B], T),
    }
    if draw(st.booleans()):
        table["reward"] = F.reshape(-1)
    if draw(st.booleans()):
        table["truncated"] = table["done"] & (rng.random(T * B) < 0.5)
    if draw(st.booleans()):
        table["valid"] = (rng.random(T * B) < 0.9) | table["done"]
    return table, gamma


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs())
def test_arrays_and_files_give_equal_audits(drawn) -> None:
    table, gamma = drawn
    names = {"done": "dones", "env": "environments", "reward": "rewards"}
    columns = {names.get(name, name): column for name, column in table.items()}
    try:
        expected = audit(gamma=gamma, **columns)
    except ValueError as error:
        expected = str(error).partition(": ")[2]
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "npz", "parquet"):
            path = Path(folder) / f"log.{kind}"
            write(path, table)
            if isinstance(expected, str):
                with pytest.raises(ValueError, match=r".") as error:
                    audit_file(path, gamma)
                assert str(error.value).endswith(expected)
            else:
                same(audit_file(path, gamma), expected)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.sampled_from([1, 7, 40, 101]), st.booleans())
def test_a_log_that_comes_in_small_parts_gives_the_same_audit(drawn, rows, told) -> None:
    """γ, the decimals of a rounded log and interleaved environments are read off its first rows, however it is cut."""
    table, gamma = drawn
    columns = {"environment" if name == "env" else name: column for name, column in table.items()}
    count = len(columns["shaped"])

    def outcome(size: int):
        cuts = range(0, count, size)
        log = Log("log", lambda: ((a, {name: x[a : a + size] for name, x in columns.items()}) for a in cuts))
        try:
            return audit_log(log, AuditOptions(gamma if told else None))
        except ValueError as error:
            return str(error)

    whole, cut = outcome(count), outcome(rows)
    if isinstance(whole, str):
        assert cut == whole
    else:
        assert not isinstance(cut, str), cut
        same(cut, whole)


def test_a_log_that_cancels_is_decoded_once() -> None:
    match, read = payback.match_after(0.9, 2), []
    F, dones = np.ones(60), np.arange(60) % 12 == 11
    table = {"shaped": payback.shape_rollout(match, match.init(F[0]), F, dones)[1], "done": dones, "reward": F}

    def tables():
        for first in range(0, 60, 20):
            read.append(first)
            yield first, {name: column[first : first + 20] for name, column in table.items()}

    assert audit_log(Log("log", tables), AuditOptions()).ok
    assert read == [0, 20, 40]
