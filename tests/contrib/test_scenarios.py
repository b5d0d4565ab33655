import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from contrib.scenarios import make_shop

SCENARIO = make_shop.TARGET


@pytest.fixture(scope="module")
def shop() -> dict[str, Any]:
    """What becomes of the scenario, by the command that ``make demo`` runs."""
    command = [sys.executable, "-m", "trio_sched", "simulate", "-f", str(SCENARIO), "--output", "json"]
    done = subprocess.run(command, capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_file_is_what_its_generator_writes() -> None:
    assert SCENARIO.read_text(encoding="utf-8") == make_shop.text(), "python -m contrib.scenarios.make_shop"


def test_it_is_a_cluster_of_a_realistic_size_in_three_zones(shop: dict[str, Any]) -> None:
    assert shop["summary"]["nodes"] >= 50
    assert shop["summary"]["placed"] + shop["summary"]["pending"] >= 500
    assert {node["zone"] for node in shop["nodes"]} == {"eu-1a", "eu-1b", "eu-1c"}
    assert {pool["name"] for pool in shop["pools"]} == {"general", "memory", "gpu", "spot", "edge"}


def test_only_the_misfits_are_pending_each_kind_for_its_own_reason(shop: dict[str, Any]) -> None:
    reasons: dict[str, str] = {}
    for group in shop["pending"]:
        for pod in group["pods"]:
            namespace, name = pod.split("/")
            assert namespace == "misfits"
            reasons[name.rpartition("-")[0]] = group["message"]
    expected = {
        "too-big": "38 Insufficient cpu",
        "too-much-memory": "38 Insufficient memory",
        "gpu-hungry": "Insufficient nvidia.com/gpu",
        "wrong-label": "didn't match Pod's node affinity/selector",
        "untolerated": "1 node(s) had untolerated taint(s), 59",
        "cordoned": "1 node(s) were unschedulable, 59",
        "unknown-node": "60 node(s) didn't satisfy plugin(s) [NodeAffinity]",
        "port-taken": "60 node(s) didn't have free ports",
        "crowded": "38 node(s) didn't match pod anti-affinity rules",
        "lonely": "38 node(s) didn't match pod affinity rules",
        "no-racks": "didn't match pod topology spread constraints (missing required label)",
        "no-such-storage": "pod has unbound immediate PersistentVolumeClaims",
        "claim-forgotten": 'persistentvolumeclaim "nowhere" not found',
        "no-such-device": "44 cannot allocate all claims",
        "gated": "Scheduling is blocked due to non-empty scheduling gates",
    }
    assert reasons.keys() == expected.keys()
    for workload, part in expected.items():
        assert part in reasons[workload]


def test_what_is_to_be_spread_is_spread(shop: dict[str, Any]) -> None:
    zone_of = {node["name"]: node["zone"] for node in shop["nodes"]}
    webs = Counter(zone_of[one["node"]] for one in shop["placements"] if one["workload"] == "web")
    assert sum(webs.values()) == 130
    assert max(webs.values()) - min(webs.values()) <= 1
    checkouts = [one["node"] for one in shop["placements"] if one["workload"] == "checkout"]
    assert len(set(checkouts)) == len(checkouts) == 9


def test_more_important_pods_that_come_later_take_the_place_of_experiments(shop: dict[str, Any]) -> None:
    assert {one["pod"] for one in shop["preempted"]} == {"ml/experiment-001", "ml/experiment-002"}
    assert {one["by"] for one in shop["preempted"]} == {"shop/fraud-check-001", "shop/fraud-check-002"}
    placed = {f"{one['namespace']}/{one['pod']}": one["node"] for one in shop["placements"]}
    for eviction in shop["preempted"]:
        assert placed[eviction["by"]] == eviction["node"]
        assert eviction["pod"] not in placed


def test_every_database_has_its_disk_and_backups_share_a_volume(shop: dict[str, Any]) -> None:
    claims = {(one["namespace"], one["storageClass"]): (one["bound"], one["pending"]) for one in shop["claims"]}
    assert claims == {("data", "disk"): (18, 0), ("data", "network"): (1, 0), ("misfits", "tape-library"): (0, 1)}
    databases = [one for one in shop["placements"] if one["workload"].startswith("postgres")]
    assert len(databases) == 18
    zone_of = {node["name"]: node["zone"] for node in shop["nodes"]}
    assert all(zone_of[one["node"]] in one["workload"] for one in databases)


def test_every_node_has_its_agent_and_nothing_is_overcommitted(shop: dict[str, Any]) -> None:
    agents = [one["node"] for one in shop["placements"] if one["workload"] == "node-agent"]
    assert sorted(agents) == sorted(node["name"] for node in shop["nodes"])
    for node in shop["nodes"]:
        assert node["pods"] <= node["podsAllocatable"]
        for resource, amount in node["requested"].items():
            assert amount <= node["allocatable"][resource]


def test_encoders_are_allocated_and_the_pod_of_one_that_breaks_is_evicted(shop: dict[str, Any]) -> None:
    (encoders,) = shop["devices"]
    assert encoders == {
        "driver": "encoder.shop.example",
        "pool": "gpu",
        "count": 12,
        "allocated": 11,
        "tainted": 1,
    }
    nodes = Counter(one["node"] for one in shop["placements"] if one["workload"] == "transcode")
    assert sum(nodes.values()) == 11
    assert nodes["gpu-06"] == 1
    assert max(nodes.values()) == 2
