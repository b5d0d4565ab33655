"""What DynamicResources says of a pending pod: each of its claims, what is wrong with it, and who has the devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import evolve

from plugins_builtin.dynamic_resources.device_changes import (
    claim_templates,
    class_without_selectors,
    constraint_text,
    freed,
    holders_of,
    made_claims,
    made_template,
    once_deleted,
    other_class,
    other_template,
    smaller_claims,
    users_of,
    with_claim,
    with_free_devices,
    without_constraints,
)
from plugins_builtin.dynamic_resources.device_constraints import attribute_of
from plugins_builtin.dynamic_resources.matching_devices import (
    CLASS,
    Devices,
    WantedDevices,
    alternatives_of,
    untolerated,
)
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    ClaimCache,
    Clause,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    Handle,
    NodeColumns,
    Pod,
    PodResourceClaim,
    PoolDevice,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceOptions,
    nearest_name,
    some_names,
    to_builtins,
)
from trio_sched.plugin_api.smaller_requests import smaller_request


def missing_claims(pod: Pod, claims: ClaimCache, handle: Handle) -> Iterator[Clause]:
    """A clause for each entry of ``spec.resourceClaims`` without a claim that can be used."""
    for entry in pod.spec.resource_claims or ():
        name = _name_of(pod, entry)
        if name is None:
            yield _not_made(pod, entry, claims, handle)
            continue
        claim = claims.get(pod.namespace, name)
        if claim is None:
            yield _not_found(pod, entry, name, claims, handle)
        elif claim.metadata.deletion_timestamp is not None:
            users = some_names([one.name for one in claim.status.reserved_for or ()]) or "nobody"
            text = f"the device claim {name} is being deleted; it is used by {users}"
            held = some_names(claim.metadata.finalizers or ())
            text += f", and held by {held}" if held else ""
            yield Clause(
                reason="ResourceClaimIsBeingDeleted",
                title=f"device claim {name}",
                cause=text,
                changes=partial(once_deleted, handle, claim),
            )


def _name_of(pod: Pod, entry: PodResourceClaim) -> str | None:
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    made = (one for one in pod.status.resource_claim_statuses or () if one.name == entry.name)
    return next((one.resource_claim_name for one in made), None)


def _not_made(pod: Pod, entry: PodResourceClaim, claims: ClaimCache, handle: Handle) -> Clause:
    """The claim that kube-controller-manager makes from a template."""
    name, templates = entry.resource_claim_template_name, claim_templates(handle)
    here = {one.name: one for one in templates or () if one.namespace == pod.namespace}
    if name and templates is not None and name not in here:
        return _no_template(pod, entry, name, handle, here, [one for one in templates if one.name == name])
    text = f"the claim of {entry.name} is not made yet"
    if name:
        text += f" from the template {name}" + (", which may not exist" if templates is None else "")
        text += "" if templates is None else "; kube-controller-manager makes it"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if name and claims.get(pod.namespace, name) is None:
            used = Change(title="use it", edits=(with_claim(pod, entry, name),))
            for made in made_claims(handle, pod.namespace, name):
                yield made & used

    return Clause(reason="ResourceClaimNotFound", title=f"device claim {entry.name}", cause=text, changes=changes)


def _no_template(
    pod: Pod,
    entry: PodResourceClaim,
    name: str,
    handle: Handle,
    here: Mapping[str, ResourceClaimTemplate],
    elsewhere: Sequence[ResourceClaimTemplate],
) -> Clause:
    """A template that does not exist; *here* are those of the namespace, *elsewhere* those of that name."""
    near = nearest_name(name, here)
    text = f"there is no ResourceClaimTemplate {name} in namespace {pod.namespace}, which the claim of {entry.name} "
    text += "is to be made from"
    if near:
        text += f"; there is {near}"
    elif elsewhere:
        text += f"; namespace {some_names([one.namespace for one in elsewhere])} has one"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if near:
            yield other_template(pod, entry, here[near])
        yield from made_template(handle, pod, entry, name, elsewhere[0] if elsewhere else None)

    title = f"device claim template {name}"
    return Clause(reason="ResourceClaimTemplateNotFound", title=title, cause=text, changes=changes)


def _not_found(pod: Pod, entry: PodResourceClaim, name: str, claims: ClaimCache, handle: Handle) -> Clause:
    near = nearest_name(name, [one.name for one in claims if one.namespace == pod.namespace])
    text = f"there is no device claim {name} in namespace {pod.namespace}" + (f"; there is {near}" if near else "")

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if near:
            yield Change(title=f"use the device claim {near}", edits=(with_claim(pod, entry, near),), corrects=True)
        yield from made_claims(handle, pod.namespace, name)

    return Clause(reason="ResourceClaimNotFound", title=f"device claim {name}", cause=text, changes=changes)


# --- device classes -------------------------------------------------------------------------------------------------


def missing_classes(handle: Handle, claim: ResourceClaim) -> Iterator[Clause]:
    """A clause for each device class that a request of *claim* names and that does not exist."""
    known = [one.name for one in handle.objects(CLASS)]
    for request in claim.spec.devices.requests or ():
        for name in _classes_of(request):
            if not name or name in known:
                continue
            near = nearest_name(name, known)
            text = f"there is no device class {name}, which the claim {claim.name} asks for"
            text += f"; there is {near}" if near else f"; there is {some_names(known) or 'none'}"
            yield Clause(
                reason="DeviceClassNotFound",
                title=f"device class {name}",
                cause=text,
                changes=partial(other_class, handle, claim, name, near),
            )


def _classes_of(request: DeviceRequest) -> list[str]:
    if request.exactly is not None:
        return [request.exactly.device_class_name]
    return [one.device_class_name for one in request.first_available or ()]


# --- claims that have devices ---------------------------------------------------------------------------------------


def allocated_clause(nodes: NodeColumns, claim: ResourceClaim, fails: BoolArray) -> Clause:
    """A claim whose devices can be used on other nodes only; *fails*, shape (nodes,), says where they cannot."""
    names = [nodes.name(position) for position in (~fails).nonzero()[0].tolist()]
    users = users_of(nodes, claim)
    text = f"the devices of the claim {claim.name} can be used on {some_names(names) or 'no node'} only"
    text += f"; it is used by {some_names([one.key for one in users])}" if users else ""
    return Clause(
        reason="ResourceClaimElsewhere",
        title=f"device claim {claim.name}",
        fails=fails,
        cause=text,
        changes=lambda _nodes: freed(claim, users),
    )


# --- claims for which devices are wanted ----------------------------------------------------------------------------


def _unallocated(devices: Devices, claims: ClaimCache, claim: ResourceClaim, fails: BoolArray) -> Clause:
    """A claim for which there are no devices on the nodes that *fails*, shape (nodes,), says."""

    def cause(_otherwise: BoolArray) -> str:
        texts = [_request_text(devices, claims, request) for request in claim.spec.devices.requests or ()]
        texts += [_constraint_text(devices, claim, one) for one in claim.spec.devices.constraints or ()]
        return f"no devices for the claim {claim.name}: {'; '.join(texts)}"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        yield from without_constraints(claim)
        for request in claim.spec.devices.requests or ():
            for wanted in alternatives_of(request):
                yield from smaller_claims(devices, claim, request, wanted)
                yield from with_free_devices(devices, claims, wanted)
        for name in dict.fromkeys(name for one in claim.spec.devices.requests or () for name in _classes_of(one)):
            yield from class_without_selectors(devices, name)

    return Clause(reason="NoDevices", title=f"devices of claim {claim.name}", fails=fails, cause=cause, changes=changes)


def unallocated_clauses(
    devices: Devices, claims: ClaimCache, claim: ResourceClaim, fails: BoolArray
) -> Iterator[Clause]:
    """The same, told from nodes that never have such devices, where there are others."""
    lacking = devices.lacking(claim)
    if lacking.any() and not lacking.all():
        names = [devices.nodes.name(position) for position in np.flatnonzero(~lacking).tolist()]
        text = f"{np.count_nonzero(lacking)} node(s) have no device that the claim {claim.name} could get"
        yield Clause(
            reason="NoSuchDevices",
            title=f"node with devices for claim {claim.name}",
            fails=fails & lacking,
            cause=f"{text}; {some_names(names)} {'has' if len(names) == 1 else 'have'} some",
            is_given=True,
        )
        fails = fails & ~lacking
    yield _unallocated(devices, claims, claim, fails)


def extended_clause(
    devices: Devices, claims: ClaimCache, pod: Pod, resource: str, count: int, name: str, fails: BoolArray
) -> Clause:
    """The extended *resource* of which *pod* requests *count*, and that the device class *name* stands behind.

    Args:
        devices: of all nodes.
        claims: all that there are.
        pod: the pod.
        resource: its name.
        count: how much of it the pod requests.
        name: of the class.
        fails: shape (nodes,): where no claim of the pod is why it is rejected.
    """
    wanted = ExactDeviceRequest(device_class_name=name, allocation_mode="ExactCount", count=count)

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        for most in range(min(count - 1, len(devices.matching(wanted))), 0, -1):
            change = smaller_request(pod, resource, most, ResourceOptions())
            if change is not None:
                yield evolve(change, series=f"devices for {resource}")
        yield from with_free_devices(devices, claims, wanted)

    return Clause(
        reason="NoDevices",
        title=f"devices for {resource} {count}",
        fails=fails,
        cause=lambda _otherwise: f"no devices for {resource}: it asks for {_wanted_text(devices, claims, wanted)}",
        changes=changes,
    )


def _request_text(devices: Devices, claims: ClaimCache, request: DeviceRequest) -> str:
    texts = [_wanted_text(devices, claims, one) for one in alternatives_of(request)]
    return f"{request.name} asks for {', or for '.join(texts)}"


def _wanted_text(devices: Devices, claims: ClaimCache, wanted: WantedDevices) -> str:
    of_class, matching = devices.of_class(wanted.device_class_name), devices.matching(wanted)
    free = list(filter(devices.is_free, matching))
    number = "all" if wanted.allocation_mode == "All" else str(wanted.count or 1)
    text = f"{number} of class {wanted.device_class_name}"
    if not of_class:
        return f"{text}; {_why_none(devices, wanted.device_class_name)}"
    amounts = (wanted.capacity.requests or {}) if wanted.capacity is not None else {}
    if amounts:
        text += f" with {', '.join(f'{name} {amount}' for name, amount in amounts.items())} each"
    text += f"; {len(of_class)} devices are of that class"
    if wanted.selectors:
        text += f", its selector takes {len(matching)} of them"
        if not matching:
            return f"{text} ({_example(of_class[0])})"
    text += f", {len(free)} are free"
    users = [pod.key for holder in holders_of(claims, matching) for pod in users_of(devices.nodes, holder)]
    text += f", others are used by {some_names(list(dict.fromkeys(users)))}" if users else ""
    text += f" ({_example(free[0])})" if amounts and free else ""
    taints = [(one, untolerated(wanted, one)) for one in free]
    tainted = sum(bool(found) for _one, found in taints)
    names = dict.fromkeys(_taint_text(taint) for _one, found in taints for taint in found)
    text += (
        f"; {tainted} of the free ones have taints that it does not tolerate: {some_names(names)}" if tainted else ""
    )
    return text + _counters_text(devices, claims, free)


def _taint_text(taint: Any) -> str:
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _counters_text(devices: Devices, claims: ClaimCache, free: Sequence[PoolDevice]) -> str:
    """Those of the free devices that share counters with others, which leave too little for them."""
    short = [(one, *devices.short_counters(one)) for one in free]
    found = [(one, texts, users) for one, texts, users in short if texts]
    if not found:
        return ""
    one, texts, users = found[0]
    pods = [pod.key for holder in holders_of(claims, users) for pod in users_of(devices.nodes, holder)]
    by = f" by {some_names(list(dict.fromkeys(pods)))}" if pods else ""
    used = f", with {some_names([user.id.device for user in users])} used{by}" if users else ""
    return f"; {len(found)} share counters with others: for {one.id.device} {'; '.join(texts)}{used}"


def _why_none(devices: Devices, name: str) -> str:
    """Why no device is of the class *name*."""
    there = devices.all()
    if not there:
        unusable = devices.unusable_pools()
        return f"no device is offered: {some_names(unusable)}" if unusable else "no ResourceSlice offers any device"
    selectors = " and ".join(devices.class_expressions(name))
    return f"none of {len(there)} devices is of that class, which takes {selectors} ({_example(there[0])})"


def _constraint_text(devices: Devices, claim: ResourceClaim, constraint: DeviceConstraint) -> str:
    """What the devices of some requests must have in common, or not, and what the free ones have."""
    text = f"they need {constraint_text(constraint)}"
    name = constraint.match_attribute or constraint.distinct_attribute
    if not name:
        return text
    free = {
        device.id: device
        for request in claim.spec.devices.requests or ()
        if not constraint.requests or request.name in constraint.requests
        for one in alternatives_of(request)
        for device in devices.matching(one)
        if devices.is_free(device)
    }
    values = [attribute_of(device, name) for device in free.values()]
    counts = Counter("none" if value is None else _value_text(value) for value in values)
    return f"{text}: {some_names([f'{number} of the free ones have {value}' for value, number in counts.items()])}"


def _value_text(value: Any) -> str:
    return str(next(iter(to_builtins(value).values()), ""))


def _example(one: PoolDevice) -> str:
    """What a device says of itself."""
    texts = [f"{name}={_value_text(value)}" for name, value in (one.device.attributes or {}).items()]
    texts += [f"{name} {capacity.value}" for name, capacity in (one.device.capacity or {}).items()]
    return f"{one.device.name} of driver {one.id.driver} has {some_names(texts) or 'neither attributes nor capacity'}"
