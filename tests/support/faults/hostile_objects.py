"""Objects about devices and pod groups with something wrong in them, as a broken API server could store them."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from trio_sched.testing import device, device_class, device_request, resource_claim, resource_slice, sub_request

Json = dict[str, Any]

DRIVER = "gpu.example.com"
BAD: tuple[Any, ...] = (
    *(None, "", [], {}, 0, -1, 2**31 - 1, 2**62, 2**70, 1.5, True, "x" * 10_000, "\x00\U0001f600\u202e", [None]),
    *(
        "1e999999999",
        "-5",
        "1n",
        "1e-999999999",
        "9" * 500,
        "Exists",
        "All",
        "ExactCount",
        "NoSuchMode",
        [[]],
        [{}],
        {"": ""},
    ),
    *({"a": {"b": {"c": []}}}, "device.driver ==", "lists.range(999999).size() > 0", "node-1", "true", "NaN"),
)


def good_objects() -> dict[str, Json]:
    """Collection → an object that uses most fields, and that works."""
    one = device(
        "gpu-0",
        attributes={"model": "a", "count": 3, "fast": True},
        capacity={"memory": "80Gi"},
        taints=["example.com/odd=yes:NoSchedule"],
    )
    slice_ = resource_slice("bad", one, device("gpu-1", attributes={"model": "b"}), name="bad", pool="bad")
    fields: Json = msgspec.to_builtins(slice_)
    spec = fields["spec"]
    spec["sharedCounters"] = [{"name": "set", "counters": {"c": {"value": "4"}}}]
    spec["devices"][1]["consumesCounters"] = [{"counterSet": "set", "counters": {"c": {"value": "2"}}}]
    partitions = {**fields, "metadata": {"name": "partitions"}, "spec": {**spec, "pool": {**spec["pool"], "name": "p"}}}
    plain: Json = msgspec.to_builtins(slice_)
    plain["spec"]["devices"][0]["capacity"]["memory"]["requestPolicy"] = {
        "default": "1Gi",
        "validRange": {"min": "1Gi", "max": "40Gi", "step": "1Gi"},
    }
    plain["spec"]["devices"][0]["allowMultipleAllocations"] = True
    claim: Json = msgspec.to_builtins(
        resource_claim(
            "bad",
            device_request(
                "one",
                selectors=[f'device.attributes["{DRIVER}"].?model.orValue("") == "a"'],
                tolerations=["example.com/odd:NoSchedule"],
                capacity={"memory": "2Gi"},
            ),
            device_request("two", first_available=[sub_request("s", count=2), sub_request("t")]),
        )
    )
    allocated: Json = msgspec.to_builtins(resource_claim("allocated"))
    allocated["status"] = {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "gpu", "driver": DRIVER, "pool": "bad", "device": "gpu-0"},
                    {
                        "request": "gpu",
                        "driver": DRIVER,
                        "pool": "nowhere",
                        "device": "lost",
                        "shareID": "s",
                        "consumedCapacity": {"memory": "1Gi"},
                        "bindingConditions": ["Ready"],
                    },
                ]
            },
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["bad"]}]}]
            },
        },
        "reservedFor": [{"resource": "pods", "name": "other", "uid": "other"}],
        "devices": [{"driver": DRIVER, "pool": "bad", "device": "gpu-0", "conditions": [{"type": "Ready"}]}],
    }
    made_class: Json = msgspec.to_builtins(device_class("bad.example.com", f'device.driver == "{DRIVER}"'))
    made_class["spec"]["extendedResourceName"] = "example.com/gpu"
    rule: Json = {
        "metadata": {"name": "bad"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": "bad", "device": "gpu-1"},
            "taint": {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"},
        },
    }
    group: Json = {
        "metadata": {"name": "bad", "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": [{"key": "zone"}]},
            "disruptionMode": "Pod",
            "priority": 5,
        },
        "status": {"conditions": [{"type": "PodGroupScheduled", "status": "False", "reason": "x"}]},
    }
    return {
        "resourceslices.resource.k8s.io": plain,
        "resourceslices.resource.k8s.io#partitions": partitions,
        "resourceclaims.resource.k8s.io": claim,
        "resourceclaims.resource.k8s.io#allocated": allocated,
        "deviceclasses.resource.k8s.io": made_class,
        "devicetaintrules.resource.k8s.io": rule,
        "podgroups.scheduling.k8s.io": group,
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in *value*, itself left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def mutated(original: Json, dice: Random, *, times: int = 1) -> Json:
    """A copy of *original* with so many things made wrong outside of its metadata."""
    copy: Json = msgspec.json.decode(msgspec.json.encode(original))
    for _time in range(times):
        path = dice.choice([one for one in places(copy) if one[0] != "metadata"] or [("spec",)])
        holder: Any = copy
        for key in path[:-1]:
            holder = holder[key]
        match dice.randrange(6):
            case 0 if isinstance(holder, dict):
                holder.pop(path[-1], None)
            case 1 if isinstance(holder, list):
                holder.append(holder[path[-1]])
            case 2 if isinstance(holder, dict):
                holder["\U0001f600/" + "k" * 300] = holder.get(path[-1])
            case _:
                holder[path[-1]] = dice.choice(BAD)
    return copy
