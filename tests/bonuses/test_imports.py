"""The counted bonuses need NumPy and nothing else, and every public name shows how it is used."""

import doctest
import subprocess
import sys

import pytest

import payback.bonuses
import payback.bonuses.jax
import payback.bonuses.torch


def test_importing_the_counted_bonuses_loads_no_network_library():
    script = "import sys, payback.bonuses; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "payback" in run.stdout.split()
    assert not {"torch", "jax", "gymnasium", "stable_baselines3"} & set(run.stdout.split())


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (
            "torch",
            "payback.bonuses.torch needs Torch (import of torch halted; None in sys.modules): pip install 'payback[",
        ),
        ("jax", "payback.bonuses.jax needs JAX (import of jax halted; None in sys.modules): pip install jax"),
    ],
)
def test_a_library_that_is_not_there_is_named_with_its_extra(library, said):
    script = f"import sys; sys.modules['{library}'] = None; import payback.bonuses.{library}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert said in run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module in (payback.bonuses, payback.bonuses.torch, payback.bonuses.jax)
        for name in module.__all__
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_every_public_name_has_a_doctest(module, name):
    documented = getattr(module, name).__doc__ or ""
    assert documented.strip().splitlines()[0].endswith(".")
    assert doctest.DocTestParser().get_examples(documented), f"{module.__name__}.{name} has no doctest"
