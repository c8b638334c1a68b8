"""All adapters take the same parameters, by name and with the same defaults; what a host cannot take is listed here."""

import inspect
from importlib import import_module

import pytest

OPTIONS = {
    "on_truncation": (None, "OnTruncation | None"),
    "observe_debt": (False, "bool"),
    "event": (None, "Source | None"),
    "learner_gamma": (None, "float | None"),
    "record": (None, "str | Path | None"),
}
FIRST = ("env", "bonus", "transform")
ADAPTERS = {
    "gymnasium.ShapeReward": (FIRST, (), ()),
    "gymnasium.ShapeVectorReward": (FIRST, (), ()),
    "sb3.ShapeVectorReward": (FIRST, (), ()),
    "pettingzoo.ShapeReward": (FIRST, (), ()),
    "gymnax.ShapeReward": (FIRST, ("record",), ()),
    "gymnax.ShapeVectorReward": (FIRST, ("record",), ()),
    "torchrl.ShapeReward": (("transform",), ("observe_debt", "event"), ("intrinsic_key", "event_key")),
    "skrl.ShapeVectorReward": (FIRST, ("observe_debt",), ()),
    "rllib.ShapeReward": (FIRST[1:], (), ("strict",)),
    "rllte.ShapeRollouts": (("module", "transform"), ("observe_debt", "event"), ("scale",)),
    "rsl_rl.ShapedPPO": ((), ("observe_debt", "learner_gamma"), ("transform", "bonus")),
}
"""Adapter → its positional parameters, the options that it has no place for, and those of its own."""
HOSTS = ("skrl", "rllib", "rllte", "rsl_rl")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.host] * x.startswith(HOSTS)) for x in ADAPTERS])
def test_parameters(name):
    module, adapter = name.split(".")
    pytest.importorskip(f"payback.integrations.{module}", reason=f"{module} is not installed", exc_type=ImportError)
    found = inspect.signature(getattr(import_module(f"payback.integrations.{module}"), adapter)).parameters
    first, missing, own = ADAPTERS[name]
    assert [x for x, p in found.items() if p.kind is p.POSITIONAL_OR_KEYWORD] == list(first)
    named = {x: (p.default, p.annotation) for x, p in found.items() if p.kind is p.KEYWORD_ONLY and x not in own}
    assert named == {option: like for option, like in OPTIONS.items() if option not in missing}
