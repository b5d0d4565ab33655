"""Every planted fault is found by its check, in words that name the hook, what happened and the fix."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.namespace import Namespace
from trio_sched.testing.conformance.check import conformance_problems

_PATH = Path(__file__).with_name("faulty_plugins.py")
_spec = importlib.util.spec_from_file_location("faulty_plugins", _PATH)
assert _spec is not None
assert _spec.loader is not None
faulty_plugins = importlib.util.module_from_spec(_spec)
import sys  # noqa: E402

sys.modules["faulty_plugins"] = faulty_plugins
_spec.loader.exec_module(faulty_plugins)

OBJECTS: dict[str, list[Any]] = {
    "Namespace": [Namespace(metadata=ObjectMeta(name="default"))],
    "widgets.v1.example.com": [AnyObject(metadata=ObjectMeta(name="w"), spec={"free": 0})],
}


@pytest.mark.parametrize(("plugin", "check", "text"), faulty_plugins.FAULTS, ids=lambda it: getattr(it, "__name__", ""))
def test_it_is_found(plugin: type[Any], check: str, text: str) -> None:
    watched = {kind: OBJECTS[kind] for kind in getattr(plugin, "watches", ())}
    problems = list(conformance_problems(plugin, checks=[check], objects=watched))
    assert any(text in problem for problem in problems), problems
