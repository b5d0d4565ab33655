"""Pods that wait for devices."""

from collections.abc import Sequence

from contrib.scenarios.manifests import (
    Json,
    device_claim,
    device_claim_template,
    device_class,
    devices,
    node,
    pod,
    taint,
    wants_devices,
    wants_template,
)
from contrib.scenarios.pending_causes.pending_cause import PendingCause, cause_of


def partitions(on: str, memory: str, **consumed: str) -> Sequence[Json]:
    """Devices of one graphics card of so much memory, and what each consumes of that."""
    counters, offered = (devices(f"{on}", *names) for names in ((), consumed))
    for one in (counters, offered):
        one["spec"]["pool"]["resourceSliceCount"] = 2
    counters["metadata"] = {"name": f"{on}-counters"}
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [{"name": "card", "counters": {"memory": {"value": memory}}}]
    for one in offered["spec"]["devices"]:
        amounts = {"memory": {"value": consumed[one["name"]]}}
        one["consumesCounters"] = [{"counterSet": "card", "counters": amounts}]
    return counters, offered


CAUSES_OF_DEVICES: Sequence[PendingCause] = (
    cause_of(
        "a device class that does not exist",
        ["DeviceClassNotFound"],
        ["device class gpus", "there is gpu"],
        "recreate the device claim asked: device class gpu",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked", "gpus"),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "a device class that does not exist, and none like it",
        ["DeviceClassNotFound"],
        ["device class accelerators", "there is gpu"],
        "recreate the device claim asked: device class gpu",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked", "accelerators"),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "a selector that no device matches",
        ["NoDevices"],
        ["claim asked", "1 devices are of that class", "takes 0 of them"],
        "recreate the device claim asked: without the selector",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked", selector='device.attributes["gpu.test"].model == "h100"'),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "a class that no device matches",
        ["NoDevices"],
        ["claim asked", "none of 1 devices is of that class", "driver gpu.test"],
        "device class gpu without the selector",
        node("n1"),
        device_class("gpu", 'device.driver == "gpus.test"'),
        devices("n1", "gpu-0"),
        device_claim("asked"),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "devices of two kinds, of which there are none and too few",
        ["NoDevices"],
        ["1 of class large", "or for 2 of class gpu", "1 are free"],
        "recreate the device claim asked: 1 devices of class gpu",
        node("n1"),
        device_class("gpu"),
        device_class("large", 'device.driver == "gpu.test" && device.attributes["gpu.test"].model == "h100"'),
        devices("n1", "gpu-0"),
        device_claim("asked", alternatives=[("large", 1), ("gpu", 2)]),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "more devices for an extended resource than there are",
        ["NoDevices"],
        ["gpu.test/card", "2 of class gpu", "1 are free"],
        "request gpu.test/card ≤ 1",
        node("n1"),
        {**device_class("gpu"), "spec": {**device_class("gpu")["spec"], "extendedResourceName": "gpu.test/card"}},
        devices("n1", "gpu-0"),
        pod(requests={"gpu.test/card": "2"}),
    ),
    cause_of(
        "devices that have to have something in common",
        ["NoDevices"],
        ["claim asked", "they need the same gpu.test/serial", "2 are free"],
        "recreate the device claim asked: without the constraint",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0", "gpu-1"),
        device_claim("asked", count=2, same="gpu.test/serial"),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "a device of a claim on a node that is full, and a node without devices",
        ["InsufficientCPU"],
        ["cpu", "0m CPU (n1)"],
        "request cpu ≤ 500m",
        node("n1", cpu="2"),
        node("n2"),
        pod("running", requests={"cpu": "1500m"}, on="n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked"),
        pod(requests={"cpu": "1"}, **wants_devices("asked")),
    ),
    cause_of(
        "more devices than a node has",
        ["NoDevices"],
        ["asks for 3 of class gpu", "2 are free"],
        "recreate the device claim asked: 2 devices",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0", "gpu-1"),
        device_claim("asked", count=3),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "devices with a taint",
        ["NoDevices"],
        ["asked", "taints that it does not tolerate"],
        "recreate the device claim asked: tolerating broken",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0", taints=[taint("broken", effect="NoSchedule")]),
        device_claim("asked"),
        pod(**wants_devices("asked")),
    ),
    cause_of(
        "a device claim that does not exist",
        ["ResourceClaimNotFound"],
        ["askd", "there is asked"],
        "use the device claim asked",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked"),
        pod(**wants_devices("askd")),
    ),
    cause_of(
        "a device claim that does not exist, and none like it",
        ["ResourceClaimNotFound"],
        ["device claim mine", "namespace default"],
        "make the device claim mine (1 of class gpu)",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        pod(**wants_devices("mine")),
    ),
    cause_of(
        "a template of a device claim that does not exist",
        ["ResourceClaimTemplateNotFound"],
        ["no ResourceClaimTemplate one-gpu in namespace default", "the claim of gpu"],
        "make the device claim template one-gpu (1 of class gpu)",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        pod(**wants_template("one-gpu")),
    ),
    cause_of(
        "a template of a device claim with a name much like it",
        ["ResourceClaimTemplateNotFound"],
        ["no ResourceClaimTemplate onegpu in namespace default", "there is one-gpu"],
        "use the device claim template one-gpu",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim_template("one-gpu"),
        pod(**wants_template("onegpu")),
    ),
    cause_of(
        "a device that consumes more of a counter than there is",
        ["NoDevices"],
        ["1 share counters with others", "memory of card has 20Gi left, it consumes 40Gi"],
        "",
        node("n1"),
        device_class("gpu"),
        *partitions("n1", "20Gi", whole="40Gi"),
        device_claim("asked"),
        pod(**wants_devices("asked")),
    ),
)
