"""``resource.k8s.io/v1beta1`` and ``v1alpha3`` in the shape of ``v1``, in which objects are stored, and back.

In v1beta1 a request has the fields of ``exactly`` directly, and a device has its fields under ``basic``. v1alpha3 is
the same, but capacities are amounts in place of objects.
"""

from __future__ import annotations

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.conversion.parts import changed_items, without

_CLAIM: Final = ("spec", "devices", "requests")
_TEMPLATE: Final = ("spec", *_CLAIM)
_SLICE: Final = ("spec", "devices")


def _request_to_stored(request: Json) -> Json:
    if "exactly" in request:
        return request
    if not request.get("deviceClassName"):  # it has firstAvailable
        return without(request, "deviceClassName")
    alternatives = {"firstAvailable": request["firstAvailable"]} if request.get("firstAvailable") else {}
    return {"name": request.get("name"), "exactly": without(request, "name", "firstAvailable"), **alternatives}


def _request_from_stored(request: Json) -> Json:
    return {"deviceClassName": "", **without(request, "exactly"), **(request.get("exactly") or {})}


def _device_to_stored(device: Json) -> Json:
    basic = device.get("basic")
    return {**without(device, "basic"), **basic} if isinstance(basic, dict) else device


def _device_from_stored(device: Json) -> Json:
    return {"name": device.get("name"), "basic": without(device, "name")}


def _amounts_to_stored(device: Json) -> Json:
    stored = _device_to_stored(device)
    capacity = stored.get("capacity")
    if not isinstance(capacity, dict):
        return stored
    return {**stored, "capacity": {name: {"value": amount} for name, amount in capacity.items()}}


def _amounts_from_stored(device: Json) -> Json:
    shown = _device_from_stored(device)
    basic = shown["basic"]
    if basic.get("capacity"):
        amounts = {name: capacity["value"] for name, capacity in basic["capacity"].items()}
        shown["basic"] = {**basic, "capacity": amounts}
    return shown


claim_to_stored = changed_items(_request_to_stored, *_CLAIM)
claim_from_stored = changed_items(_request_from_stored, *_CLAIM)
template_to_stored = changed_items(_request_to_stored, *_TEMPLATE)
template_from_stored = changed_items(_request_from_stored, *_TEMPLATE)
slice_to_stored = changed_items(_device_to_stored, *_SLICE)
slice_from_stored = changed_items(_device_from_stored, *_SLICE)
slice_of_amounts_to_stored = changed_items(_amounts_to_stored, *_SLICE)
slice_of_amounts_from_stored = changed_items(_amounts_from_stored, *_SLICE)
