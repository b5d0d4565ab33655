"""Every planted fault is found by its check, in words that name the hook, what happened and the fix."""

import time
from typing import Any

import pytest
from faulty_plugins import FAULTS, Base

from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.namespace import Namespace
from trio_sched.plugin_api import Pod, hookimpl
from trio_sched.testing import NotConforming, check_conformance, pod
from trio_sched.testing.conformance.check import conformance_problems

OBJECTS: dict[str, list[Any]] = {
    "Namespace": [Namespace(metadata=ObjectMeta(name="default"))],
    "widgets.v1.example.com": [AnyObject(metadata=ObjectMeta(name="w"), spec={"free": 0})],
}


def objects_for(plugin: type[Any]) -> dict[str, list[Any]]:
    return {kind: OBJECTS[kind] for kind in getattr(plugin, "watches", OBJECTS)}


@pytest.mark.parametrize(("plugin", "check", "text"), FAULTS, ids=[plugin.__name__ for plugin, _check, _text in FAULTS])
def test_it_is_found(plugin: type[Any], check: str, text: str) -> None:
    problems = list(conformance_problems(plugin, checks=[check], objects=objects_for(plugin)))
    assert any(text in problem for problem in problems), problems


@pytest.mark.parametrize("name", ["ThrowsDice", "ForgetsCustomResources", "PermitsWithTrue", "HidesThePriority"])
def test_all_checks_together_say_little_else(name: str) -> None:
    plugin, _check, text = next(one for one in FAULTS if one[0].__name__ == name)
    with pytest.raises(NotConforming) as caught:
        check_conformance(plugin, objects=objects_for(plugin))
    (problem,) = caught.value.problems
    assert text in problem


def test_the_smallest_history_is_shown() -> None:
    plugin = next(one for one, _check, _text in FAULTS if one.__name__ == "ForgetsNamespaces")
    (problem,) = conformance_problems(plugin, checks=["events"], objects=objects_for(plugin))
    change, *cluster = problem.split("\n")
    assert 'Namespace \'default\' changes: metadata.labels: nothing → {"example.com/open":"yes"}' in change
    assert [line.split()[0] for line in cluster] == ["Node", "pending", "Namespace"]


def test_a_plugin_that_blocks_is_not_called_again_and_again() -> None:
    calls: list[str] = []

    class Slow(Base):
        name = "Slow"

        @hookimpl
        def permit(self, pod: Pod) -> None:
            calls.append(pod.name)
            time.sleep(1000)

    with pytest.raises(NotConforming) as found:
        check_conformance(Slow, pods=[pod("p")])
    assert [problem.partition(" (")[0] for problem in found.value.problems] == ["pod 'p': permit sleeps"]
    assert len(calls) < 10
