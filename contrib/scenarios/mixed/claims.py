"""Scenarios of device claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from contrib.scenarios.manifests import (
    ZONE,
    Json,
    device_claim,
    device_class,
    devices,
    pod,
    taint,
    wants_devices,
)
from contrib.scenarios.mixed.scenario import (
    DEVICES,
    TAINT_RULES,
    scenario,
    three_nodes,
)


def _slice(name: str, attributes: Sequence[Mapping[str, Json]], **where: Any) -> Json:
    """Devices *name*-0, *name*-1, … with *attributes*."""
    made = devices(name)
    listed = [{"name": f"{name}-{n}", "attributes": dict(one)} for n, one in enumerate(attributes)]
    spec = {key: value for key, value in made["spec"].items() if key != "nodeName"}
    return {**made, "spec": {**spec, **(where or {"nodeName": name}), "devices": listed}}


_A100: Final = {"model": {"string": "a100"}}
_H100: Final = {"model": {"string": "h100"}}
CLAIMS: Final = (
    scenario(
        "devices that selectors choose",
        [
            *three_nodes(),
            device_class("gpu"),
            _slice("n1", [_A100, _A100]),
            _slice("n3", [_H100]),
            *(device_claim(f"p{n}", selector='device.attributes["gpu.test"].model == "h100"') for n in (1, 2)),
            device_claim("p3", count=2),
        ],
        [pod(f"p{n}", **wants_devices(f"p{n}")) for n in (1, 2, 3)],
        DEVICES,
    ),
    scenario(
        "devices that must be alike",
        [
            *three_nodes(),
            device_class("gpu"),
            _slice("n1", [{**_A100, "numa": {"int": 0}}, {**_A100, "numa": {"int": 1}}]),
            _slice("n3", [{**_A100, "numa": {"int": n}} for n in (0, 1, 1)]),
            *(
                {
                    **made,
                    "spec": {
                        "devices": {**made["spec"]["devices"], "constraints": [{"matchAttribute": "gpu.test/numa"}]}
                    },
                }
                for made in (device_claim(name, count=2) for name in ("p1", "p2"))
            ),
        ],
        [pod(f"p{n}", **wants_devices(f"p{n}")) for n in (1, 2)],
        DEVICES,
    ),
    scenario(
        "a claim that pods share, on a node with little room",
        [
            *three_nodes(n3={"cpu": "4"}),
            device_class("gpu"),
            _slice("n3", [_A100]),
            device_claim("shared"),
        ],
        [pod(f"p{n}", requests={"cpu": "1500m"}, **wants_devices("shared")) for n in (1, 2, 3)],
        DEVICES,
    ),
    scenario(
        "all devices of a zone, and devices that all nodes reach",
        [
            *three_nodes(),
            device_class("gpu", 'device.attributes["gpu.test"].model == "a100"'),
            device_class("switch", 'device.attributes["gpu.test"].model == "h100"'),
            _slice(
                "in-b",
                [_A100, _A100],
                nodeSelector={
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]
                },
            ),
            _slice("anywhere", [_H100], allNodes=True),
            *(
                {
                    **device_claim(name),
                    "spec": {
                        "devices": {
                            "requests": [
                                {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
                                *(
                                    [{"name": "switch", "exactly": {"deviceClassName": "switch"}}]
                                    if name == "p1"
                                    else []
                                ),
                            ]
                        }
                    },
                }
                for name in ("p1", "p2")
            ),
            device_claim("p3", "switch"),
        ],
        [
            pod(
                name,
                resourceClaims=[{"name": "gpu", "resourceClaimName": name}],
            )
            for name in ("p1", "p2", "p3")
        ],
        DEVICES,
    ),
    scenario(
        "devices that a rule taints",
        [
            *three_nodes(),
            device_class("gpu"),
            _slice("n1", [_A100, _A100]),
            _slice("n3", [_A100]),
            {
                "apiVersion": "resource.k8s.io/v1beta2",
                "kind": "DeviceTaintRule",
                "metadata": {"name": "broken"},
                "spec": {"deviceSelector": {"driver": "gpu.test", "pool": "n1"}, "taint": taint("broken")},
            },
            device_claim("p1"),
            device_claim("p2"),
        ],
        [pod(name, **wants_devices(name)) for name in ("p1", "p2")],
        TAINT_RULES,
    ),
)
