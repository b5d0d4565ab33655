"""``resource.k8s.io/v1beta1``, and what ``v1alpha3`` of device taint rules had, in the shape of ``v1`` and back.

v1beta1 has the fields of ``exactly`` directly in a request, and those of a device under ``basic``; v1beta2 is as v1.
What does not look as expected is left as it is: whoever decodes it says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

Json = dict[str, Any]

_DROPPED_SELECTORS: Final = ("deviceClassName", "selectors")
"""Fields of the selector of a DeviceTaintRule that only v1alpha3 of Kubernetes 1.33 to 1.35 has."""


def claim_from_v1beta1(claim: Json) -> Json:
    """A ResourceClaim."""
    return changed(claim, ("spec", "devices"), lambda devices: _each(devices, "requests", _request_from_v1beta1))


def claim_to_v1beta1(claim: Json) -> Json:
    """A ResourceClaim, or a patch of one."""
    return changed(claim, ("spec", "devices"), lambda devices: _each(devices, "requests", _request_to_v1beta1))


def template_from_v1beta1(template: Json) -> Json:
    """A ResourceClaimTemplate."""
    return changed(template, ("spec",), claim_from_v1beta1)


def template_to_v1beta1(template: Json) -> Json:
    """A ResourceClaimTemplate, or a patch of one."""
    return changed(template, ("spec",), claim_to_v1beta1)


def slice_from_v1beta1(slice_: Json) -> Json:
    """A ResourceSlice."""
    return changed(slice_, ("spec",), lambda spec: _each(spec, "devices", _device_from_v1beta1))


def slice_to_v1beta1(slice_: Json) -> Json:
    """A ResourceSlice, or a patch of one."""
    return changed(slice_, ("spec",), lambda spec: _each(spec, "devices", _device_to_v1beta1))


def taint_rule_from_v1alpha3(rule: Json) -> Json:
    """A DeviceTaintRule.

    Raises:
        msgspec.ValidationError: it selects by what later versions have not; without that it would taint more devices.
    """

    def check(selector: Json) -> Json:
        for name in _DROPPED_SELECTORS:
            if selector.get(name):
                raise msgspec.ValidationError(
                    f"spec.deviceSelector.{name} is not evaluated, and without it the rule would taint other devices, "
                    "too; select by driver, pool and device, as Kubernetes does from 1.36 on"
                )
        return selector

    return changed(rule, ("spec", "deviceSelector"), check)


def _request_from_v1beta1(request: Json) -> Json:
    if "exactly" in request:
        return request
    alternatives = request.get("firstAvailable")
    if alternatives:  # deviceClassName is there all the same, empty
        return {name: request[name] for name in ("name", "firstAvailable") if name in request}
    exactly = {name: value for name, value in request.items() if name not in ("name", "firstAvailable")}
    return {**({"name": request["name"]} if "name" in request else {}), "exactly": exactly}


def _request_to_v1beta1(request: Json) -> Json:
    exactly = request.get("exactly")
    if not isinstance(exactly, dict):
        return request
    return {**{name: value for name, value in request.items() if name != "exactly"}, **exactly}


def _device_from_v1beta1(device: Json) -> Json:
    basic = device.get("basic")
    if not isinstance(basic, dict):
        return device
    return {**{name: value for name, value in device.items() if name != "basic"}, **basic}


def _device_to_v1beta1(device: Json) -> Json:
    if "basic" in device:
        return device
    basic = {name: value for name, value in device.items() if name != "name"}
    return {**({"name": device["name"]} if "name" in device else {}), "basic": basic}


def changed(fields: Json, path: tuple[str, ...], change: Callable[[Json], Json]) -> Json:
    """*fields* with *change* applied to the object at *path*, if there is one; *fields* stays as it is."""
    name, *rest = path
    inner = fields.get(name)
    if not isinstance(inner, dict):
        return fields
    return {**fields, name: changed(inner, tuple(rest), change) if rest else change(inner)}


def _each(fields: Json, name: str, change: Callable[[Json], Json]) -> Json:
    """*fields* with *change* applied to every object of the list *name*."""
    entries = fields.get(name)
    if not isinstance(entries, list):
        return fields
    return {**fields, name: [change(one) if isinstance(one, dict) else one for one in entries]}
