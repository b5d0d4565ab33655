"""What is said of pods that the configuration of the scheduler keeps waiting."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from contrib.scenarios.manifests import NAMESPACE, node, pod
from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.simulation.asked_pods import Name
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.explaining import Question, explain_manifests

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
RULE = {"key": "team", "operator": "In", "values": ["a"]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [RULE]}]}}
ADDS_AFFINITY = {"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": ADDED}}]}]}
DEAD_EXTENDER = {"extenders": [{"urlPrefix": "http://127.0.0.1:9/quota", "filterVerb": "filter"}]}


def explained(configuration: dict[str, object], folder: Path) -> dict[str, Any]:
    config, file = folder / "scheduler.yaml", folder / "cluster.json"
    config.write_text(json.dumps({**HEAD, **configuration}))
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n1"), pod()]}))
    question = Question(settings=settings_of(config, "", PluginSelection(), ()), names=[Name.read("asked", NAMESPACE)])
    manifests = ClusterFiles(files=(file,)).load_dumped(pytest.fail, lambda _what: None)
    (answer,) = trio.run(explain_manifests, question, manifests, NOW, pytest.fail).answers
    return answer.explanation


def test_the_affinity_that_a_profile_adds_is_named(tmp_path: Path) -> None:
    data = explained(ADDS_AFFINITY, tmp_path)
    assert data["cause"]["reasons"] == ["ProfileAffinityMismatch"]
    assert data["cause"]["clauses"] == ["node affinity of its profile: team=a"]
    assert [one["title"] for one in data["remedies"]] == ["label n1 team=a"]


def test_an_extender_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    data = explained(DEAD_EXTENDER, tmp_path)
    assert data["cause"]["reasons"] == ["ExtenderFailed"]
    assert "connection refused" in data["cause"]["text"]
    assert data["cause"]["clauses"] == ["extender http://127.0.0.1:9/quota"]
