"""Change the core in one wrong way at a time, and check that the tests of `make test` notice: python tests/mutants.py

    python tests/mutants.py [--list | --trust] [WORD …]        only mutants whose file or text holds one of the words

Each mutant is one replacement in a copy of `src/payback`; its text must stand exactly once in its file, so that a
rewrite of the core cannot leave a mutant behind that changes nothing. The test files that concern it run until one
fails. Exit status 1 if a mutant survives.
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

# Imported before the forks: they take most of the time that the tests of one mutant would.
import hypothesis
import jax.numpy  # noqa: F401
import pytest
import torch

ROOT = Path(__file__).parents[1]
QUICK = "not (slow or browser or ray or host)"
TESTS = {
    "core/center.py": "test_center test_bad_states test_libraries test_rollout test_float32",
    "core/felt.py": "test_felt test_interest",
    "core/matches.py": "test_streaming test_law test_match test_libraries",
    "core/scaling.py": "test_scaling test_libraries test_float32",
    "core/state.py": "test_shared_state test_state",
}
"""The files of tests/core that concern a file, the quickest first; others have `OTHERS`."""
OTHERS = "test_streaming test_law test_rollout test_chain test_float32 test_libraries test_match test_numbers"


class Mutant(NamedTuple):
    """One replacement."""

    file: str
    right: str
    wrong: str


ONCE, AGES, GEOMETRIC = "core/repay_at_once.py", "core/repay_at_ages.py", "core/repay_geometric.py"
CENTER, SCALING, LEDGER = "core/center.py", "core/scaling.py", "ledger.py"
MUTANTS = [
    # signs
    Mutant(ONCE, "xp.where(done, -due, shaped)", "xp.where(done, due, shaped)"),
    Mutant(ONCE, "reward - xp.where(settle, due, 0.0)", "reward + xp.where(settle, due, 0.0)"),
    Mutant(ONCE, "flat[settled] -= due", "flat[settled] += due"),
    Mutant(ONCE, "age * -math.log(self.gamma)", "age * math.log(self.gamma)"),
    Mutant(AGES, "shaped = reward - _weigh(", "shaped = reward + _weigh("),
    Mutant(AGES, "reward - due, done, -rest)", "reward - due, done, rest)"),
    Mutant(AGES, "np.multiply(lent[:T], -float(due_of[-1]))", "np.multiply(lent[:T], float(due_of[-1]))"),
    Mutant(AGES, "shaped.reshape(-1)[ends] = -settlement", "shaped.reshape(-1)[ends] = settlement"),
    Mutant(AGES, "xp.where(dones, -settled, rewards - paid)", "xp.where(dones, settled, rewards - paid)"),
    Mutant(AGES, "xp.where(dones, -settlement[D:], rewards - due)", "xp.where(dones, -settlement[D:], rewards + due)"),
    Mutant(GEOMETRIC, "reward - (1 - rate) * state.debt", "reward + (1 - rate) * state.debt"),
    Mutant(GEOMETRIC, "= -settlement / share", "= settlement / share"),
    Mutant(CENTER, "shaped, seen = reward - mean,", "shaped, seen = reward + mean,"),
    Mutant(CENTER, "step - (mean - old)", "(mean - old) - step"),
    # exponents and factors
    Mutant(ONCE, "lent + reward / interest, age + 1", "lent + reward, age + 1"),
    Mutant(ONCE, "lent + reward / interest, age + 1", "lent + reward / interest, age"),
    Mutant(ONCE, "xp.where(settle, 1.0, interest)", "interest"),
    Mutant(ONCE, "accumulate(1 / self.gamma,", "accumulate(self.gamma,"),
    Mutant(ONCE, "fresh = flat[settled].astype(np.float64) / self.gamma", "fresh = flat[settled].astype(np.float64)"),
    Mutant(AGES, "self.gamma ** -np.arange(1.0,", "self.gamma ** np.arange(1.0,"),
    Mutant(AGES, "np.arange(1.0, len(self._shares) + 1)", "np.arange(0.0, len(self._shares))"),
    Mutant(AGES, "np.cumsum(shares[::-1])[::-1]", "shares"),
    Mutant(AGES, "float(gamma**-D)", "float(gamma**D)"),
    Mutant(GEOMETRIC, "(rate * state.debt + reward) / self.gamma", "(rate * state.debt + reward) * self.gamma"),
    Mutant(GEOMETRIC, "self.rate / self.gamma, np", "self.rate * self.gamma, np"),
    Mutant(GEOMETRIC, "rewards * (share / self.gamma)", "rewards * share"),
    Mutant(CENTER, "state.weight * state.fade**seen + seen", "state.weight * state.fade + seen"),
    Mutant(CENTER, "weight = weight * fade**n + n", "weight = weight + n"),
    Mutant(CENTER, "kept = base.weight * base.fade**count", "kept = base.weight"),
    Mutant(SCALING, "kept * state.squares + xp.sum(", "state.squares + xp.sum("),
    Mutant(SCALING, "cast_to(xp, reward, wide) ** 2", "cast_to(xp, reward, wide)"),
    Mutant("core/felt.py", "np.maximum(0.0, 1 - age / rollout)", "1.0"),
    Mutant("core/felt.py", "exponent = -age * math.log(gamma)", "exponent = age * math.log(gamma)"),
    Mutant("core/matches.py", "shares[self.delay - 1 :] = 1", "shares[:1] = 1"),
    Mutant("core/matches.py", "np.full(self.window, 1 / self.window)", "np.full(self.window, 1.0)"),
    Mutant("core/transform.py", "return debt if self._after == 1 else self._after * debt", "return debt"),
    # ends
    Mutant(ONCE, "flat[settled[over]] = 0", "pass"),
    Mutant(ONCE, "xp.where(done, 0.0, lent), xp.where(done, 0, age)", "lent, xp.where(done, 0, age)"),
    Mutant(AGES, "reward - due, done, -rest)", "reward - due, done, reward - rest)"),
    Mutant(AGES, "replaced(xp, after, done, 0.0)", "after"),
    Mutant(AGES, "lent[t : t + W + 1, ended] = 0", "lent[t : t + W, ended] = 0"),
    Mutant(AGES, "    flat[at] = 0\n", ""),
    Mutant(AGES, "        flat[loans] = 0\n", ""),
    Mutant(AGES, "first[first >= B] - B", "first[first >= B]"),
    Mutant(AGES, "age[:-1] >= k", "age[:-1] > k"),
    Mutant(AGES, "age[-1] >= xp.arange(W, 0, -1)[:, None]", "age[-1] >= xp.arange(1, W + 1)[:, None]"),
    Mutant(AGES, "xp.where(ahead[:T] < D", "xp.where(ahead[:T] < D - 1"),
    Mutant(AGES, "xp.where(steps <= D", "xp.where(steps < D"),
    Mutant(GEOMETRIC, "xp.where(done, -state.debt, shaped)", "shaped"),
    Mutant(GEOMETRIC, "due[ended] = 0", "pass"),
    # resets, invalid rows, what is dropped and what comes too early
    Mutant(ONCE, "xp.where(settle, 0.0, lent), xp.where(settle, 0, age)", "lent, xp.where(settle, 0, age)"),
    Mutant("core/transform.py", "self._where(xp, valid, after, state)", "after"),
    Mutant("core/transform.py", "xp.where(valid, shaped, 0.0)", "shaped"),
    Mutant("core/transform.py", "where, (0,) * len(state), state)", "where, state, (0,) * len(state))"),
    Mutant(AGES, "self._due_and_rest[1], loans)", "self._due_and_rest[0], loans)"),
    Mutant(CENTER, "means[:-1].astype(rewards.dtype)", "means[1:].astype(rewards.dtype)"),
    Mutant(CENTER, "np.count_nonzero(valid) if xp is np else xp.sum(valid)", "seen"),
    Mutant(CENTER, "state.mean + risen[:-1]", "state.mean + risen[1:]"),
    Mutant(CENTER, "excess, seen = xp.where(valid", "excess, _ = xp.where(valid"),
    Mutant("core/transform.py", "dones[:-1] | ~valid[:-1]", "dones[:-1] | valid[:-1]"),
    # dtypes
    Mutant(ONCE, "xp.where(lent == 0, 0, age), lent.dtype)", "xp.where(lent == 0, 0, age), np.float64)"),
    Mutant(AGES, "weights.astype(loans.dtype)).dot(loans)", "weights).dot(loans)"),
    Mutant(CENTER, "means[:-1].astype(rewards.dtype)", "means[:-1]"),
    Mutant(SCALING, "reward / cast_to(xp, rms, reward.dtype)", "reward / rms[None]"),
    # the ledger
    Mutant(LEDGER, "return terminated, truncated & ~terminated", "return terminated, truncated"),
    Mutant(LEDGER, "return terminated | truncated, xp.zeros_like(truncated)", "return terminated, truncated"),
    Mutant(LEDGER, "left, gone = xp.where(where, 0.0, state.owed)", "left, gone = state.owed"),
    Mutant(LEDGER, "self._match.drop(state.loans, where)", "state.loans"),
    Mutant(LEDGER, "n, interest = len(payments), 1 / self._match.gamma", "n, interest = len(payments), 1.0"),
    Mutant(LEDGER, "xp.where(ends, xp.maximum(sums[3],", "xp.where(ends, xp.minimum(sums[3],"),
    Mutant(LEDGER, "sums = xp.where(valid, sums, before.sums)", "pass"),
    Mutant(LEDGER, "sums = _begin(xp, sums, ends)", "pass"),
    Mutant(LEDGER, "(debt + payments[0]) * interest", "(debt + payments[0])"),
    Mutant(LEDGER, "done = done if valid is None else done & valid", "pass"),
    Mutant(LEDGER, "if not (none_ends or self.settles) and _any(xp, carried):", "if False:"),
    Mutant(LEDGER, "abs(debt - owed)", "abs(debt + owed)"),
]


def tests_of(file: str) -> list[str]:
    """Return the test files that concern a file of the library, those that are there."""
    if file == LEDGER:
        return [str(path) for path in sorted((ROOT / "tests").glob("test_ledger*.py"))]
    names = (TESTS.get(file) or OTHERS).split()
    return [str(path) for name in names if (path := ROOT / "tests" / "core" / f"{name}.py").exists()]


def planted(mutant: Mutant) -> str:
    """Return the mutated source of its file; refuse one whose text does not stand there exactly once."""
    source = (ROOT / "src" / "payback" / mutant.file).read_text()
    found = source.count(mutant.right)
    if found != 1:
        raise SystemExit(f"{mutant.file} holds {mutant.right!r} {found} times, not once: renew the mutant")
    return source.replace(mutant.right, mutant.wrong)


def status(source: Path, files: list[str]) -> int:
    """Return pytest's exit status with the library in `source`, in a fork: what is imported here need not be again."""
    child = multiprocessing.get_context("fork").Process(target=_run, args=(source, files))
    child.start()
    child.join()
    assert child.exitcode is not None
    return child.exitcode


def _run(source: Path, files: list[str]) -> None:
    sys.path.insert(0, str(source))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    # A failure is enough; a small counter-example and a traceback would take most of the time.
    unshrunk = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=unshrunk)
    hypothesis.settings.load_profile("mutants")
    options = [
        "-x",
        "-q",
        "--tb=no",
        "--rootdir",
        str(ROOT),
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        "-m",
        QUICK,
    ]
    options += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    result = 99  # where pytest itself fails, which kills no mutant
    try:
        for file in files:  # one by one, because collecting all of them takes longer than the first one's tests
            result = int(pytest.main([*options, file]))
            if result != 0:
                break
    finally:
        os._exit(result)


def survives(mutant: Mutant) -> bool:
    """Plant the mutant in a copy of the library and say whether all its tests pass."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
        (source / "payback" / mutant.file).write_text(planted(mutant))
        found = status(source, tests_of(mutant.file))
    if found not in (0, 1, 2):  # 2: the mutant cannot be imported
        raise SystemExit(f"pytest stopped with status {found} at {mutant}")
    return found == 0


def main() -> int:
    """Plant all mutants that are asked for; print each one's fate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of a mutant's file or text; all mutants if left out")
    parser.add_argument("--list", action="store_true", help="check that each mutant has its place, and run nothing")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a mutant first")
    asked = parser.parse_args()
    chosen = [one for one in MUTANTS if not asked.words or any(word in " ".join(one) for word in asked.words)]
    torch.set_num_threads(1)
    survivors = 0
    for mutant in chosen:
        planted(mutant)
    print(f"{len(chosen)} mutants have their place")
    if asked.list:
        return 0
    whole = sorted({file for mutant in chosen for file in tests_of(mutant.file)})
    if not asked.trust and status(ROOT / "src", whole) != 0:
        raise SystemExit("the tests fail without any mutant")
    for mutant in chosen:
        start = os.times().children_user
        alive = survives(mutant)
        survivors += alive
        change = f"{mutant.right.strip()} → {mutant.wrong or 'nothing'}"
        seconds = os.times().children_user - start
        print(f"{'SURVIVES' if alive else 'killed':8} {seconds:5.1f} s  {mutant.file}: {change}", flush=True)
    print(f"{len(chosen)} mutants, {survivors} survive")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
