"""The rules that the notes of several claims repeat, taken out of them: a claim refers to its rules by number."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Notes:
    """Hold the rules that several claims share, and what each claim has of its own."""

    rules: tuple[str, ...]
    """Without repetition, in the order in which they first occur; a claim refers to them by their place, from 1."""
    own: tuple[str, ...]
    """Claim by claim: what its note says that no other says."""
    shared: tuple[tuple[int, ...], ...]
    """Claim by claim: the numbers of the rules that its note repeats."""


def shared_rules(notes: Sequence[str]) -> Notes:
    """Take out of the notes every sentence that stands in two of them or more; those that always go together are one.

    >>> found = shared_rules(["Sooner. p: a test. P: pairs.", "In every seed. p: a test. P: pairs.", "Sooner."])
    >>> found.rules, found.own, found.shared
    (('Sooner.', 'p: a test. P: pairs.'), ('', 'In every seed.', ''), ((1, 2), (2,), (1,)))
    """
    split = [sentences(note) for note in notes]
    where: dict[str, list[int]] = {}
    for i, parts in enumerate(split):
        for part in dict.fromkeys(parts):
            where.setdefault(part, []).append(i)
    repeated = [part for part in where if len(where[part]) > 1]
    rules: list[list[str]] = []
    for part in repeated:
        together = rules and where[rules[-1][0]] == where[part]
        rules[-1].append(part) if together else rules.append([part])
    number = {part: n for n, group in enumerate(rules, start=1) for part in group}
    return Notes(
        tuple(" ".join(group) for group in rules),
        tuple(" ".join(part for part in parts if part not in number) for parts in split),
        tuple(tuple(sorted({number[part] for part in parts if part in number})) for parts in split),
    )


def sentences(note: str) -> list[str]:
    """Split a note at the full stops that a space follows.

    >>> sentences("Around: within 1. The paper takes 49 for the optimum; it is 50.")
    ['Around: within 1.', 'The paper takes 49 for the optimum; it is 50.']
    """
    parts = note.split(". ")
    return [f"{part}." for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
