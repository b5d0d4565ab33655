"""``resource.k8s.io/v1beta1`` and ``v1alpha3`` in the shape of ``v1`` and back; v1beta2 is as v1.

v1beta1 has the fields of ``exactly`` directly in a request, and those of a device under ``basic``. v1alpha3 has that,
too; its capacities are amounts and no objects, and results do not say that they are for administrators.
What does not look as expected is left as it is: whoever decodes it says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from trio_sched.documents.json_values import Json

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


def claim_from_v1alpha3(claim: Json) -> Json:
    """A ResourceClaim.

    Raises:
        msgspec.ValidationError: the driver's controller allocates it, not the scheduler.
    """
    spec: Any = claim.get("spec")
    if isinstance(spec, dict) and spec.get("controller"):
        raise msgspec.ValidationError(
            f"spec.controller: {spec['controller']!r} allocates it, which Kubernetes has given up in 1.32; only claims "
            "that the scheduler allocates can be used"
        )
    claim = claim_from_v1beta1(claim)
    administered = _administered(claim)
    if not administered:
        return claim

    def marked(result: Json) -> Json:
        return {**result, "adminAccess": True} if result.get("request") in administered else result

    return changed(claim, ("status", "allocation", "devices"), lambda devices: _each(devices, "results", marked))


def slice_from_v1alpha3(slice_: Json) -> Json:
    """A ResourceSlice."""
    return _with_capacities(slice_from_v1beta1(slice_), (), lambda amount: {"value": amount})


def slice_to_v1alpha3(slice_: Json) -> Json:
    """A ResourceSlice, or a patch of one."""

    def amount(capacity: Any) -> Any:
        return capacity.get("value") if isinstance(capacity, dict) else capacity

    return _with_capacities(slice_to_v1beta1(slice_), ("basic",), amount)


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


def _administered(claim: Json) -> list[str]:
    """The names of the requests of a claim, in the shape of v1, that are for administrators."""
    found: list[str] = []

    def look(request: Json) -> Json:
        exactly, name = request.get("exactly"), request.get("name")
        if isinstance(exactly, dict) and exactly.get("adminAccess") is True and isinstance(name, str):
            found.append(name)
        return request

    changed(claim, ("spec", "devices"), lambda devices: _each(devices, "requests", look))
    return found


def _with_capacities(slice_: Json, path: tuple[str, ...], change: Callable[[Any], Any]) -> Json:
    """*slice_* with *change* applied to the capacities of its devices, which are at *path* in each."""

    def change_all(capacities: Json) -> Json:
        return {name: change(capacity) for name, capacity in capacities.items()}

    def device(one: Json) -> Json:
        return changed(one, (*path, "capacity"), change_all)

    return changed(slice_, ("spec",), lambda spec: _each(spec, "devices", device))


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
