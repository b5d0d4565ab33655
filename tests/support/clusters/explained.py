"""What is said of one pod of a cluster that is given as manifests."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from contrib.scenarios.manifests import NAMESPACE, node, pod
from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.documents.json_values import Json
from trio_sched.simulation.asked_pods import Name
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.explaining import Question, explain_manifests

GATES = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
GROUP = "scheduling.k8s.io/v1alpha2"
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def racks(count: int, each: int = 2) -> list[Json]:
    return [node(f"n{i}", labels={"rack": f"r{i // each}"}) for i in range(count * each)]


def gang(minimum: int | None = 4, *, topology: str = "") -> Json:
    policy: Json = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    spec: Json = {"schedulingPolicy": policy}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {
        "apiVersion": GROUP,
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": NAMESPACE},
        "spec": spec,
    }


def members(count: int, cpu: str = "3", **more: Any) -> list[Json]:
    group = {"podGroupName": "train"}
    return [pod(f"t{i}", requests={"cpu": cpu}, schedulingGroup=group, **more) for i in range(count)]


def explained(
    objects: list[Json],
    folder: Path,
    name: str = "t0",
    *,
    gates: str = GATES,
    flags: Sequence[str] = (),
    version: str = "1.36",
    configuration: Json | None = None,
) -> dict[str, Any]:
    """The explanation of the pod *name*, as data; *configuration* is that of the scheduler without its head."""
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    manifests = ClusterFiles(files=(file,), kubernetes_version=version).load_dumped(pytest.fail, lambda _what: None)
    config = None
    if configuration is not None:
        config = folder / "scheduler.yaml"
        config.write_text(json.dumps({**HEAD, **configuration}))
    settings = settings_of(config, gates, PluginSelection(), flags)
    question = Question(settings=settings, names=[Name.read(name, NAMESPACE)], kubernetes_version=version)
    (answer,) = trio.run(explain_manifests, question, manifests, NOW, pytest.fail).answers
    return answer.explanation


def titles(data: dict[str, Any]) -> list[str]:
    return [one["title"] for one in data["remedies"]]
