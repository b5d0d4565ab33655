"""``bench-plugin`` schedules what it says, with and without the plugin, and counts every call."""

import json
from pathlib import Path
from typing import Any

import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

Capture = pytest.CaptureFixture[str]
SMALL = ("--nodes", "4", "--running", "6", "--warm-up", "2", "--pods", "3", "--rounds", "1")
PLUGIN = """
from attrs import frozen
from trio_sched.plugin_api import hookimpl, unschedulable

@frozen(kw_only=True)
class CountsArgs:
    limit: int = 100

class Counts:
    name = "Counts"
    Args = CountsArgs

    def __init__(self, args, handle):
        self.limit = args.limit

    @hookimpl
    def filter_node(self, pod, node):
        is_wanted = pod.labels.get("refuse") != "me" and len(node.pods) < self.limit
        return None if is_wanted else unschedulable("no")

    @hookimpl
    def reserve(self, pod): ...

class Orders:
    name = "Orders"

    def __init__(self, args, handle): pass

    @hookimpl
    def queue_sort(self, queued):
        return queued.pod.name

class Background:
    name = "Background"

    def __init__(self, args, handle): pass

    @hookimpl
    async def run(self): ...
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    file = tmp_path / "counts.py"
    file.write_text(PLUGIN)
    return str(file)


def measured(capsys: Capture, name: str, *arguments: str) -> dict[str, Any]:
    assert main(["bench-plugin", name, *SMALL, "-o", "json", *arguments]) == ExitCode.OK, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_every_call_for_the_pods_that_are_measured_is_counted(plugin: str, capsys: Capture) -> None:
    found = measured(capsys, "Counts", "--plugin", plugin)
    assert {one["hook"]: one["calls"] for one in found["hooks"]} == {"filter_node": 3 * 4, "reserve": 3}
    assert found["placed"] == 3
    assert [len(found["microsecondsPerPod"][way]) for way in ("without", "with")] == [1, 1]
    assert all(one["microseconds"] > 0 for one in found["hooks"])


def test_pods_that_run_already_and_the_arguments_of_the_configuration_count(
    plugin: str, tmp_path: Path, capsys: Capture
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins: {filter: {enabled: [{name: Counts}]}}\n  pluginConfig: [{name: Counts, args: {limit: 3}}]\n"
    )
    found = measured(capsys, "Counts", "--plugin", plugin, "--config", str(config), "--running", "8")
    assert found["placed"] == 2  # 8 running pods and 2 that warm up leave 2 places of 12
    assert [one["hook"] for one in found["hooks"]] == ["filter_node"]


@pytest.mark.parametrize("name", ["Orders", "Background", "PrioritySort", "NodeResourcesFit", "DefaultBinder"])
def test_plugins_of_every_kind_can_be_left_out_and_put_in(name: str, plugin: str, capsys: Capture) -> None:
    assert measured(capsys, name, "--plugin", plugin)["placed"] == 3


def test_all_pods_are_copies_of_the_one_that_is_given(plugin: str, tmp_path: Path, capsys: Capture) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {refuse: me}}\n"
        "spec: {containers: [{name: c, image: i}]}\n"
    )
    assert main(["bench-plugin", "Counts", *SMALL, "--plugin", plugin, "--pod", str(pod)]) == ExitCode.FAILURE
    assert "none of the pods found a node" in capsys.readouterr().err
    pod.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i, foo: 1}]}\n"
    )
    assert main(["bench-plugin", "Counts", *SMALL, "--plugin", plugin, "--pod", str(pod)]) == ExitCode.FAILURE
    assert "foo" in capsys.readouterr().err
    pod.write_text("[]")
    assert main(["bench-plugin", "Counts", *SMALL, "--plugin", plugin, "--pod", str(pod)]) != ExitCode.OK


def test_the_table_has_a_row_per_profile_and_hook(plugin: str, capsys: Capture) -> None:
    assert main(["bench-plugin", "Counts", *SMALL, "--plugin", plugin]) == ExitCode.OK
    text = capsys.readouterr().out
    assert text.startswith("3 pods on 4 nodes with 6 running pods, after 2 to warm up; once each way\n")
    for row in ("without it", "with Counts", "difference", "filter_node", "reserve"):
        assert f"\n {row} " in text


def test_a_plugin_that_does_not_exist_is_named(capsys: Capture) -> None:
    assert main(["bench-plugin", "NodeName2", *SMALL]) == ExitCode.FAILURE
    assert "NodeName2" in capsys.readouterr().err
