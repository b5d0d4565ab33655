"""A mixed scenario, and the objects that many of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from contrib.scenarios.manifests import (
    Json,
    node,
    pod,
)

DEVICES: Final = "devices"
TAINT_RULES: Final = "device taint rules"
POD_GROUPS: Final = "pod groups"
"""What not every API server serves."""


@frozen(kw_only=True)
class MixedScenario:
    """One cluster.

    Attributes:
        objects: what is there before the scheduler starts, pods that run included.
        pods: each is created when the one before it is bound or was found unschedulable.
        needs: kinds that not every API server serves: `DEVICES`, `TAINT_RULES`, `POD_GROUPS`; empty: none.
    """

    name: str
    objects: Sequence[Json]
    pods: Sequence[Json]
    needs: str = ""


WEB: Final = {"app": "web"}
SMALL: Final = {"cpu": "1", "memory": "1Gi"}


def pods(count: int, **fields: Any) -> list[Json]:
    """Equal pods: p1, p2, …"""
    return [pod(f"p{number}", **fields) for number in range(1, count + 1)]


def three_nodes(**more: Mapping[str, Any]) -> list[Json]:
    """Three nodes in three zones; the first has most room, the last the least. *more* has fields by name."""
    sizes = (("n1", "16", "32Gi", "a"), ("n2", "8", "16Gi", "b"), ("n3", "4", "8Gi", "c"))
    return [
        node(name, **{"cpu": cpu, "memory": memory, "zone": zone, **more.get(name, {})})
        for name, cpu, memory, zone in sizes
    ]


def host_port(port: int, **more: Any) -> Json:
    """What a container has that listens on a port of its node."""
    return {"ports": [{"containerPort": 80, "hostPort": port, **more}]}


def of_priority(name: str, one: Json) -> Json:
    """A pod, with a priority class."""
    return {**one, "spec": {**one["spec"], "priorityClassName": name}}


def scenario(name: str, objects: Sequence[Json], pods: Sequence[Json], needs: str = "") -> MixedScenario:
    """A scenario, in a line."""
    return MixedScenario(name=name, objects=objects, pods=pods, needs=needs)
