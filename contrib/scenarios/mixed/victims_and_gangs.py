"""Scenarios of preemption and of pod groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from contrib.scenarios.manifests import (
    HOST,
    NAMESPACE,
    ZONE,
    Json,
    affinity,
    node,
    pod,
    priority_class,
)
from contrib.scenarios.mixed.scenario import (
    POD_GROUPS,
    SMALL,
    WEB,
    host_port,
    of_priority,
    scenario,
    three_nodes,
)


def _budget(labels: Mapping[str, str]) -> Json:
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    metadata = {"name": "budget", "namespace": NAMESPACE}
    return {**head, "metadata": metadata, "spec": {"minAvailable": 1, "selector": {"matchLabels": dict(labels)}}}


def _group(name: str, minimum: int) -> Json:
    head = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {**head, "metadata": metadata, "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}}


PREEMPTION: Final = (
    scenario(
        "the victims of lowest priority",
        [
            priority_class("low", 10),
            priority_class("middle", 100),
            priority_class("upper", 500),
            priority_class("high", 1000),
            *(node(name, zone=zone) for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "c"))),
            of_priority("upper", pod("r1", requests={"cpu": "4"}, on="n1")),
            of_priority("low", pod("r2", requests={"cpu": "4"}, on="n2")),
            of_priority("high", pod("r3", requests={"cpu": "4"}, on="n3")),
        ],
        [
            of_priority("middle", pod("p1", requests={"cpu": "2"})),
            of_priority("high", pod("p2", requests={"cpu": "4"})),
        ],
    ),
    scenario(
        "victims without a budget",
        [
            priority_class("high", 1000),
            *(node(name, zone=zone) for name, zone in (("n1", "a"), ("n2", "b"))),
            pod("r1", requests={"cpu": "4"}, on="n1", labels=WEB),
            pod("r2", requests={"cpu": "2"}, on="n2"),
            pod("r3", requests={"cpu": "2"}, on="n2"),
            _budget(WEB),
        ],
        [of_priority("high", pod(name, requests={"cpu": "3"})) for name in ("p1", "p2", "p3")],
    ),
    scenario(
        "a pod that does not preempt",
        [
            {**priority_class("polite", 1000), "preemptionPolicy": "Never"},
            node("n1"),
            pod("running", requests={"cpu": "3"}, on="n1"),
        ],
        [of_priority("polite", pod("p1", requests={"cpu": "2"})), pod("p2", requests={"cpu": "1"})],
    ),
    scenario(
        "victims that hold a port or do not want the pod",
        [
            priority_class("high", 1000),
            node("n1"),
            node("n2", zone="b"),
            pod("r1", on="n1", container=host_port(8080)),
            pod("r2", on="n2", affinity=affinity("podAntiAffinity", WEB, HOST)),
            pod("r3", on="n2", requests=SMALL),
        ],
        [
            of_priority("high", pod("p1", container=host_port(8080), nodeSelector={ZONE: "a"})),
            of_priority("high", pod("p2", labels=WEB, nodeSelector={ZONE: "b"})),
        ],
    ),
)

GANGS: Final = (
    scenario(
        "a gang that fits and one that does not",
        [*three_nodes(), _group("first", 3), _group("second", 3)],
        [
            *(
                pod(name, requests={"cpu": cpu}, schedulingGroup={"podGroupName": group}, nodeSelector={ZONE: zone})
                for group, cpu, names in (("first", "3", "p1 p2 p3"), ("second", "6", "q1 q2 q3"))
                for name, zone in zip(names.split(), "abc", strict=True)
            ),
            pod("single", requests={"cpu": "4"}),
        ],
        POD_GROUPS,
    ),
    scenario(
        "a gang whose pods are not all there",
        [*three_nodes(), _group("first", 3)],
        [
            *(pod(f"p{n}", requests=SMALL, schedulingGroup={"podGroupName": "first"}) for n in (1, 2)),
            pod("single", requests=SMALL),
        ],
        POD_GROUPS,
    ),
)
