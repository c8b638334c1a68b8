"""Each mutant that `make mutants` plants has its place: a rewrite renews the mutants of the lines it changes."""

from .mutants import MUTANTS, ROOT


def test_every_mutant_has_its_place():
    sources = {file: (ROOT / "src" / "payback" / file).read_text() for file in {mutant.file for mutant in MUTANTS}}
    found = [(mutant.file, mutant.right, sources[mutant.file].count(mutant.right)) for mutant in MUTANTS]
    assert [(file, right) for file, right, times in found if times != 1] == []
