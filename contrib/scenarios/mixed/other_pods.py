"""Scenarios of affinity to other pods and of topology spreading."""

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
    spread,
    taint,
)
from contrib.scenarios.mixed.scenario import (
    SMALL,
    WEB,
    pods,
    scenario,
    three_nodes,
)


def _preferred(which: str, labels: Mapping[str, str], key: str) -> Json:
    (term,) = affinity(which, labels, key)[which]["requiredDuringSchedulingIgnoredDuringExecution"]
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {which: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


AFFINITY: Final = (
    scenario(
        "pod affinity in the zone",
        [*three_nodes(), node("n4", zone="b"), pod("db", on="n4", labels={"app": "db"})],
        pods(3, requests={"cpu": "3"}, affinity=affinity("podAffinity", {"app": "db"}, ZONE)),
    ),
    scenario(
        "pods with affinity to each other",
        [*three_nodes(), node("n4", zone="a")],
        pods(3, labels=WEB, requests={"cpu": "7"}, affinity=affinity("podAffinity", WEB, ZONE)),
    ),
    scenario(
        "one pod per host",
        three_nodes(),
        pods(4, labels=WEB, affinity=affinity("podAntiAffinity", WEB, HOST)),
    ),
    scenario(
        "preferred affinity and anti-affinity",
        [*three_nodes(), pod("web", on="n1", labels=WEB), pod("db", on="n3", labels={"app": "db"})],
        [
            pod("p1", affinity=_preferred("podAntiAffinity", WEB, HOST)),
            pod("p2", affinity=_preferred("podAffinity", {"app": "db"}, HOST)),
        ],
    ),
    scenario(
        "affinity to pods of the same version",
        [
            *three_nodes(),
            pod("old", on="n2", labels={**WEB, "version": "1"}),
            pod("new", on="n3", labels={**WEB, "version": "2"}),
        ],
        [
            pod(
                f"p{number}",
                labels={**WEB, "version": str(number)},
                affinity={
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": ZONE,
                                "labelSelector": {"matchLabels": WEB},
                                "matchLabelKeys": ["version"],
                            }
                        ]
                    }
                },
            )
            for number in (1, 2, 3)
        ],
    ),
    scenario(
        "anti-affinity of a running pod to another namespace",
        [
            *three_nodes(),
            {
                **pod("agent", on="n1"),
                "metadata": {"name": "agent", "namespace": "kube-system", "labels": {"app": "agent"}},
            },
            pod(
                "alone",
                on="n2",
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": ZONE,
                                "labelSelector": {"matchLabels": WEB},
                                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
                            }
                        ]
                    }
                },
            ),
        ],
        [
            pod(
                f"p{number}",
                labels=WEB,
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": HOST,
                                "labelSelector": {"matchLabels": {"app": "agent"}},
                                "namespaces": ["kube-system"],
                            }
                        ]
                    }
                },
            )
            for number in (1, 2)
        ],
    ),
)

SPREAD: Final = (
    scenario(
        "spread over zones",
        [*three_nodes(), node("n4", cpu="2", memory="4Gi", zone="a")],
        pods(5, labels=WEB, topologySpreadConstraints=spread(ZONE, labels=WEB)),
    ),
    scenario(
        "spread over zones if that is possible",
        [*three_nodes(), pod("running", on="n2", labels=WEB)],
        pods(4, labels=WEB, topologySpreadConstraints=spread(ZONE, labels=WEB, whenUnsatisfiable="ScheduleAnyway")),
    ),
    scenario(
        "spread over more zones than there are",
        three_nodes(),
        pods(4, labels=WEB, topologySpreadConstraints=spread(ZONE, labels=WEB, minDomains=4)),
    ),
    scenario(
        "spread over nodes without taints, by version",
        [
            *three_nodes(n3={"taints": [taint("dedicated")]}),
            pod("old", on="n1", labels={**WEB, "version": "1"}),
        ],
        pods(
            3,
            requests=SMALL,
            labels={**WEB, "version": "2"},
            topologySpreadConstraints=spread(ZONE, labels=WEB, matchLabelKeys=["version"], nodeTaintsPolicy="Honor"),
        ),
    ),
    scenario(
        "pods of a service",
        [
            *three_nodes(),
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web", "namespace": NAMESPACE},
                "spec": {"selector": WEB, "ports": [{"port": 80}]},
            },
        ],
        pods(4, labels=WEB),
    ),
)
