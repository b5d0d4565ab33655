"""Selectors that fail for a device, as they do where it lacks an attribute that they name, and what would mend them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from attrs import evolve, frozen

from plugins_builtin.dynamic_resources.device_changes import recreated_claim, with_fields, with_selectors
from plugins_builtin.dynamic_resources.matching_devices import (
    CLASS,
    Devices,
    WantedDevices,
    alternatives_of,
    expressions,
)
from plugins_builtin.dynamic_resources.search_effort import SelectorFailed
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    Clause,
    DeviceClass,
    DeviceRequest,
    Edit,
    PoolDevice,
    ResourceClaim,
    nearest_name,
    replace_fields,
    some_names,
)

_NO_KEY: Final = "no such key: "
_RUNTIME_ERROR: Final = "CEL runtime error: "


@frozen(kw_only=True)
class _Failure:
    """A selector, and the first device for which it fails."""

    expression: str
    of_class: bool
    """Whether it is one of the device class, else of the request."""
    device: PoolDevice
    problem: str


def failing_clause(devices: Devices, claim: ResourceClaim) -> Clause | None:
    """The first selector of *claim*, or of its device classes, that fails for a device; None if none does.

    On whichever node that device is, it ends the search for all.
    """
    for request in claim.spec.devices.requests or ():
        for wanted in alternatives_of(request):
            failure = _failure(devices, wanted)
            if failure is not None:
                return _clause(devices, claim, request, wanted, failure)
    return None


def _failure(devices: Devices, wanted: WantedDevices) -> _Failure | None:
    of_class = devices.class_expressions(wanted.device_class_name)
    of_request = expressions(wanted.selectors)
    for device in devices.all():
        for number, expression in enumerate((*of_class, *of_request)):
            try:
                if not devices.matches(expression, device):
                    break
            except SelectorFailed as failed:
                problem = str(failed).removeprefix(_RUNTIME_ERROR)
                return _Failure(expression=expression, of_class=number < len(of_class), device=device, problem=problem)
    return None


def _clause(
    devices: Devices, claim: ResourceClaim, request: DeviceRequest, wanted: WantedDevices, failure: _Failure
) -> Clause:
    of = f"device class {wanted.device_class_name}" if failure.of_class else f"claim {claim.name}"
    device = failure.device
    known = (*(device.device.attributes or ()), *(device.device.capacity or ()))
    names = sorted(name.removeprefix(f"{device.id.driver}/") for name in known)
    text = f"the selector {failure.expression} of the {of} fails for {device.id.device} of driver {device.id.driver}: "
    text += f"{failure.problem}; it has {some_names(names) or 'neither attributes nor capacity'}"

    def changed(what: str, expression: str | None) -> Change:
        if failure.of_class:
            found: DeviceClass | None = devices.handle.object(CLASS, wanted.device_class_name)
            selectors = _replaced(found.spec.selectors if found is not None else (), failure.expression, expression)
            edit = Edit(kind=CLASS, name=wanted.device_class_name, apply=partial(with_selectors, selectors=selectors))
            return Change(title=f"{of} {what}", edits=(edit,))
        fields = {"selectors": _replaced(wanted.selectors, failure.expression, expression)}
        return recreated_claim(claim, partial(with_fields, of=request, wanted=wanted, fields=fields), what)

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        for what, expression in _mended(devices, failure):
            yield evolve(changed(what, expression), corrects=True)
        yield changed("without the selector that fails", None)

    return Clause(reason="DeviceSelectorFails", title=f"selector of the {of}", cause=text, changes=changes)


def _replaced(selectors: Any, old: str, new: str | None) -> Any:
    """*selectors* with another expression for *old*, or without it; None if none is left."""
    found = []
    for one in selectors or ():
        if one.cel is None or one.cel.expression != old:
            found.append(one)
        elif new is not None:
            found.append(replace_fields(one, cel=replace_fields(one.cel, expression=new)))
    return tuple(found) or None


def _mended(devices: Devices, failure: _Failure) -> Iterator[tuple[str, str]]:
    """Expressions that may be meant, each with what is different."""
    before, is_missing, missing = failure.problem.partition(_NO_KEY)
    if before or not is_missing:
        return
    found = re.search(rf"""device\.(\w+)\[["']([^"']+)["']\]\.{re.escape(missing)}\b""", failure.expression)
    if found is None:
        return
    field, domain = found[1], found[2]
    there: dict[str, set[str]] = {}
    """Domain → the names that some device has in it."""
    for device in devices.all():
        for key in getattr(device.device, field, None) or ():
            of, _slash, name = key.rpartition("/")
            there.setdefault(of or device.id.driver, set()).add(name)
    known = there.get(domain, set())
    if missing in known:  # of other devices
        guarded = f'"{missing}" in device.{field}["{domain}"] && ({failure.expression})'
        yield f"with a selector of devices that have {missing} only", guarded
        return
    if (near := nearest_name(missing, known)) is not None:
        expression = re.sub(rf"(?<![\w\"']){re.escape(missing)}\b", near, failure.expression)
        yield f"with {near} instead of {missing} in its selector", expression
    if (other := nearest_name(domain, there)) is not None and missing in there[other]:
        yield f"with {other} instead of {domain} in its selector", failure.expression.replace(domain, other)
