"""What real replicas are watched for: each thing that must never happen is found, and what may happen is none of it."""

from typing import Any

import pytest

from contrib.sharding.real.checks import Checks
from contrib.sharding.real.workload import ANCHOR, HOST, ZONE, anti_affinity, node_manifest, pod_manifest

LARGE = 3000
"""Millicores of which a node has no room for twice."""


def checks(*, deleted: tuple[str, ...] = ()) -> Checks:
    nodes = {f"n{number}": node_manifest(number) for number in range(6)}
    return Checks(nodes, deleted.__contains__, lambda _name: None)


def on(node: str, name: str, *, cpu: int = 10, app: str = "", priority: int = 0, **spec: Any) -> dict[str, Any]:
    made = pod_manifest(
        name, cpu, {"app": app or name}, **spec, priority=priority, **({"nodeName": node} if node else {})
    )
    made["metadata"]["uid"] = name
    return {**made, "status": {}}


def claim(name: str, device: str) -> dict[str, Any]:
    results = [{"pool": "n0", "device": device}]
    return {"metadata": {"name": name}, "status": {"allocation": {"devices": {"results": results}}}}


BESIDE = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": ANCHOR}}
        ]
    }
}


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        (on("n0", "a", cpu=LARGE), on("n0", "b", cpu=LARGE), "6 of 4000m cpu"),
        (on("n0", "a"), on("n3", "b", affinity=anti_affinity({"app": "a"}, ZONE)), "a is on n0"),
        (on("n0", "a", affinity=anti_affinity({"app": "b"}, HOST)), on("n0", "b"), "a is on n0"),
        (on("n0", "anchor", app="anchor"), on("n1", "b", affinity=BESIDE), "there is no pod with"),
        (on("n0", "a"), on("n0", "b", nodeSelector={ZONE: "z1"}), "its selector is"),
        (on("n0", "a"), on("n1", "a"), "a was on n0 and is on n1"),
    ],
)  # fmt: skip
async def test_a_bind_that_breaks_a_rule_is_found(first: dict[str, Any], second: dict[str, Any], problem: str) -> None:
    found = checks()
    found.pod_changed("ADDED", first)
    assert found.problems == []
    found.pod_changed("MODIFIED", second)
    (said,) = found.problems
    assert problem in said


async def test_what_is_gone_and_what_waits_breaks_no_rule() -> None:
    found = checks(deleted=("a",))
    found.pod_changed("ADDED", on("n0", "a", cpu=LARGE))
    found.pod_changed("ADDED", on("", "b", cpu=LARGE))
    found.pod_changed("DELETED", on("n0", "a", cpu=LARGE))
    found.pod_changed("MODIFIED", on("n0", "b", cpu=LARGE))
    found.pod_changed("ADDED", on("n3", "c", affinity=anti_affinity({"app": "b"}, HOST)))
    assert found.problems == []
    assert list(found.bound_at) == ["a", "b", "c"]
    assert found.pending() == []


async def test_a_pod_that_nothing_is_more_important_than_must_not_be_evicted() -> None:
    found = checks()
    for name, priority in (("low", 0), ("high", 1000)):
        found.pod_changed("ADDED", on("n0", name, priority=priority))
        found.pod_changed("DELETED", on("n0", name, priority=priority))
    assert found.evicted == {"low", "high"}
    (said,) = found.problems
    assert "high was evicted" in said


async def test_a_device_that_two_claims_have_is_found() -> None:
    found = checks()
    found.claim_changed("ADDED", claim("a", "gpu-0"))
    found.claim_changed("ADDED", claim("b", "gpu-1"))
    found.claim_changed("DELETED", claim("a", "gpu-0"))
    found.claim_changed("ADDED", claim("c", "gpu-0"))
    assert found.problems == []
    found.claim_changed("MODIFIED", claim("b", "gpu-0"))
    (said,) = found.problems
    assert "b has ('n0', 'gpu-0'), which c has, too" in said


async def test_events_of_two_nodes_and_pods_away_from_their_devices_are_found() -> None:
    found = checks()
    found.claim_changed("ADDED", claim("a", "gpu-0"))
    found.pod_changed("ADDED", on("n1", "a", resourceClaims=[{"name": "gpu", "resourceClaimName": "a"}]))
    notes = ("assigned to n1", "assigned to n1", "assigned to n2")
    found.at_the_end([{"reason": "Scheduled", "regarding": {"uid": "a"}, "note": note} for note in notes])
    on_devices, on_nodes = found.problems
    assert "its devices on {'n0'}" in on_devices
    assert "assigned to n1; assigned to n2" in on_nodes
