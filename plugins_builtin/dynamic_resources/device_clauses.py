"""What DynamicResources says of a pending pod: each of its claims, what is wrong with it, and who has the devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve, field, frozen

from plugins_builtin.dynamic_resources.search_effort import SearchTimedOut, SelectorFailed
from trio_sched.plugin_api import (
    BadNodeSelector,
    BoolArray,
    Change,
    ClaimCache,
    Clause,
    DeviceClass,
    DeviceRequest,
    DeviceToleration,
    Edit,
    ExactDeviceRequest,
    Handle,
    NodeColumns,
    NodeDevicesCache,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    PoolDevice,
    ResourceClaim,
    delete_pod,
    edit_pod,
    nearest_name,
    replace_fields,
    some_names,
    to_builtins,
)

_CLAIM: Final = "ResourceClaim"
_CLASS: Final = "DeviceClass"
_MAX_CLASSES: Final = 2
"""Device classes that are tried instead of another."""
_MAX_USERS: Final = 3
"""Pods that one change deletes at most."""
_NO_SCHEDULE: Final = ("NoSchedule", "NoExecute")

Matches = Callable[[str, PoolDevice], bool]
"""Whether a CEL expression is true for a device."""


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
            yield Clause(reason="ResourceClaimIsBeingDeleted", title=f"device claim {name}", cause=text)


def _name_of(pod: Pod, entry: PodResourceClaim) -> str | None:
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    made = (one for one in pod.status.resource_claim_statuses or () if one.name == entry.name)
    return next((one.resource_claim_name for one in made), None)


def _not_made(pod: Pod, entry: PodResourceClaim, claims: ClaimCache, handle: Handle) -> Clause:
    """The claim that kube-controller-manager makes from a template."""
    template = entry.resource_claim_template_name
    text = f"the claim of {entry.name} is not made yet"
    text += f" from the template {template}, which may not exist" if template else ""

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if template and claims.get(pod.namespace, template) is None:
            used = Change(title="use it", edits=(_with_claim(pod, entry, template),))
            for made in _made_claims(handle, pod.namespace, template):
                yield made & used

    return Clause(reason="ResourceClaimNotFound", title=f"device claim {entry.name}", cause=text, changes=changes)


def _not_found(pod: Pod, entry: PodResourceClaim, name: str, claims: ClaimCache, handle: Handle) -> Clause:
    near = nearest_name(name, [one.name for one in claims if one.namespace == pod.namespace])
    text = f"there is no device claim {name} in namespace {pod.namespace}" + (f"; there is {near}" if near else "")

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        if near:
            yield Change(title=f"use the device claim {near}", edits=(_with_claim(pod, entry, near),), corrects=True)
        yield from _made_claims(handle, pod.namespace, name)

    return Clause(reason="ResourceClaimNotFound", title=f"device claim {name}", cause=text, changes=changes)


def _with_claim(pod: Pod, entry: PodResourceClaim, name: str) -> Edit:
    """*entry* of *pod* refers to the claim *name*."""

    def changed(one: Pod) -> Pod:
        entries = tuple(
            replace_fields(other, resource_claim_name=name, resource_claim_template_name=None)
            if other.name == entry.name
            else other
            for other in one.spec.resource_claims or ()
        )
        return replace_fields(one, spec=replace_fields(one.spec, resource_claims=entries))

    return edit_pod(pod, changed)


def _made_claims(handle: Handle, namespace: str, name: str) -> Iterator[Change]:
    """A claim of that name, for a device of one of the classes."""
    for known in list(handle.objects(_CLASS))[:_MAX_CLASSES]:
        wanted = ExactDeviceRequest(device_class_name=known.name, allocation_mode="ExactCount", count=1)
        model = ResourceClaim(metadata=ObjectMeta(name=name, namespace=namespace))
        devices = replace_fields(model.spec.devices, requests=(DeviceRequest(name="device", exactly=wanted),))
        made = replace_fields(model, spec=replace_fields(model.spec, devices=devices))
        yield Change(
            title=f"make the device claim {name} (1 of class {known.name})",
            edits=(Edit(kind=_CLAIM, name=name, namespace=namespace, apply=partial(_given, made)),),
            note="what it asks for is a guess",
        )


def _given(made: ResourceClaim, _none: None) -> ResourceClaim:
    return made


# --- device classes -------------------------------------------------------------------------------------------------


def missing_classes(handle: Handle, claim: ResourceClaim) -> Iterator[Clause]:
    """A clause for each device class that a request of *claim* names and that does not exist."""
    known = [one.name for one in handle.objects(_CLASS)]
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
                changes=partial(_other_class, handle, claim, name, near),
            )


def _classes_of(request: DeviceRequest) -> list[str]:
    if request.exactly is not None:
        return [request.exactly.device_class_name]
    return [one.device_class_name for one in request.first_available or ()]


def _other_class(
    handle: Handle, claim: ResourceClaim, name: str, near: str | None, _nodes: BoolArray
) -> Iterator[Change]:
    known: list[DeviceClass] = [one for one in handle.objects(_CLASS) if near is None or one.name == near]
    for one in known[:_MAX_CLASSES]:
        renamed = partial(_with_class, old=name, new=one.name)
        yield evolve(_recreated_claim(claim, renamed, f"device class {one.name}"), corrects=near is not None)
    model = known[0] if known else DeviceClass()
    metadata = replace_fields(model.metadata, name=name, uid="", resource_version="")
    made = replace_fields(model, metadata=metadata)
    edit = Edit(kind=_CLASS, name=name, apply=lambda _none: made)
    like = f"like {known[0].name}" if known else "of any device"
    yield Change(title=f"make the device class {name} {like}", edits=(edit,))


def _with_class(request: DeviceRequest, old: str, new: str) -> DeviceRequest:
    if request.exactly is not None and request.exactly.device_class_name == old:
        return replace_fields(request, exactly=replace_fields(request.exactly, device_class_name=new))
    alternatives = tuple(
        replace_fields(one, device_class_name=new) if one.device_class_name == old else one
        for one in request.first_available or ()
    )
    return replace_fields(request, first_available=alternatives or None)


def _recreated_claim(claim: ResourceClaim, change: Callable[[DeviceRequest], DeviceRequest], what: str) -> Change:
    """*claim* with changed requests: the fields of a claim cannot be changed, so it is recreated."""

    def changed(one: Any) -> Any:
        requests = tuple(map(change, one.spec.devices.requests or ()))
        devices = replace_fields(one.spec.devices, requests=requests)
        return replace_fields(one, spec=replace_fields(one.spec, devices=devices))

    edit = Edit(kind=_CLAIM, name=claim.name, namespace=claim.namespace, apply=changed, recreate=True)
    return Change(title=f"recreate the device claim {claim.name}: {what}", edits=(edit,))


# --- claims that have devices ---------------------------------------------------------------------------------------


def allocated_clause(nodes: NodeColumns, claim: ResourceClaim, fails: BoolArray) -> Clause:
    """A claim whose devices can be used on other nodes only; *fails*, shape (nodes,), says where they cannot."""
    names = [nodes.name(position) for position in (~fails).nonzero()[0].tolist()]
    users = _users(nodes, [claim])
    text = f"the devices of the claim {claim.name} can be used on {some_names(names) or 'no node'} only"
    text += f"; it is used by {some_names([one.key for one in users])}" if users else ""
    return Clause(
        reason="ResourceClaimElsewhere",
        title=f"device claim {claim.name}",
        fails=fails,
        cause=text,
        changes=lambda _nodes: _freed([claim], users),
    )


def _users(nodes: NodeColumns, claims: Sequence[ResourceClaim]) -> list[Pod]:
    """The running pods that use *claims*."""
    uids = {one.uid for claim in claims for one in claim.status.reserved_for or ()}
    return [pod for node in nodes for pod in node.pods if pod.uid in uids] if uids else []


def _freed(claims: Sequence[ResourceClaim], users: Sequence[Pod]) -> Iterator[Change]:
    """The deletion of all pods that use *claims*, whose devices are free then."""
    if not 0 < len(users) <= _MAX_USERS:
        return

    def unused(one: Any) -> Any:
        return replace_fields(one, status=replace_fields(one.status, allocation=None, reserved_for=None))

    freed = [
        Edit(kind=_CLAIM, name=one.name, namespace=one.namespace, apply=unused, is_consequence=True) for one in claims
    ]
    title = f"delete {some_names([one.key for one in users])}"
    yield Change(title=title, edits=(*map(delete_pod, users), *freed))


# --- claims for which devices are wanted ----------------------------------------------------------------------------


@frozen(eq=False, kw_only=True)
class Devices:
    """The devices of all nodes, and what a request says of them."""

    handle: Handle
    nodes: NodeColumns
    matches: Matches
    cache: NodeDevicesCache = field(factory=NodeDevicesCache)

    def all(self) -> list[PoolDevice]:
        """Each device once."""
        found: dict[Any, PoolDevice] = {}
        for position in range(len(self.nodes)):
            try:
                found.update((one.id, one) for one in self.cache.get(self.nodes, position).devices)
            except BadNodeSelector:
                continue  # the filter reports it
        return list(found.values())

    def passing(self, expressions: Iterable[str], devices: Iterable[PoolDevice]) -> list[PoolDevice]:
        """Those for which all *expressions* are true."""
        wanted = list(expressions)
        return [one for one in devices if all(self._is_true(expression, one) for expression in wanted)]

    def _is_true(self, expression: str, device: PoolDevice) -> bool:
        try:
            return self.matches(expression, device)
        except (SelectorFailed, SearchTimedOut):
            return False

    def of_class(self, name: str) -> list[PoolDevice]:
        """The devices of a class."""
        found: DeviceClass | None = self.handle.object(_CLASS, name)
        return [] if found is None else self.passing(_expressions(found.spec.selectors), self.all())


def _expressions(selectors: Iterable[Any] | None) -> list[str]:
    return [one.cel.expression for one in selectors or () if one.cel is not None]


def unallocated_clause(devices: Devices, claims: ClaimCache, claim: ResourceClaim, fails: BoolArray) -> Clause:
    """A claim for which there are no devices on the nodes that *fails*, shape (nodes,), says."""

    def cause(_otherwise: BoolArray) -> str:
        texts = [_request_text(devices, request) for request in claim.spec.devices.requests or ()]
        return f"no devices for the claim {claim.name}: {'; '.join(texts)}"

    def changes(_nodes: BoolArray) -> Iterator[Change]:
        for request in claim.spec.devices.requests or ():
            if request.exactly is not None:
                yield from _smaller(devices, claim, request, request.exactly)
                yield from _with_free_devices(devices, claims, request.exactly)

    return Clause(reason="NoDevices", title=f"devices of claim {claim.name}", fails=fails, cause=cause, changes=changes)


def _request_text(devices: Devices, request: DeviceRequest) -> str:
    exact = request.exactly
    if exact is None:
        return f"none of the alternatives of {request.name} is free"
    of_class = devices.of_class(exact.device_class_name)
    matching = devices.passing(_expressions(exact.selectors), of_class)
    free = [one for one in matching if not devices.nodes.devices.allocated.has(one.id)]
    text = f"{request.name} asks for {exact.count or 1} of class {exact.device_class_name}"
    text += f"; {len(of_class)} devices are of that class"
    if exact.selectors:
        text += f", its selector takes {len(matching)} of them"
        if not matching and of_class:
            text += f" ({some_names(_attributes(of_class))})"
    tainted = [one for one in free if _untolerated(exact, one)]
    text += f", {len(free)} are free"
    return text + (f", {len(tainted)} of these have taints that it does not tolerate" if tainted else "")


def _attributes(devices: Sequence[PoolDevice]) -> list[str]:
    """What the first of *devices* says of itself, as an example."""
    found = devices[0].device.attributes or {}
    values = {name: to_builtins(value) for name, value in found.items()}
    texts = [f"{name}={next(iter(value.values()), '')}" for name, value in values.items()]
    return [f"{devices[0].device.name} has {some_names(texts)}"] if texts else ["they have no attributes"]


def _untolerated(exact: ExactDeviceRequest, device: PoolDevice) -> list[Any]:
    return [
        taint
        for taint in device.device.taints or ()
        if taint.effect in _NO_SCHEDULE and not any(_tolerates(one, taint) for one in exact.tolerations or ())
    ]


def _tolerates(toleration: DeviceToleration, taint: Any) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def _smaller(
    devices: Devices, claim: ResourceClaim, request: DeviceRequest, exact: ExactDeviceRequest
) -> Iterator[Change]:
    """The claim with fewer devices, without a selector, or with a toleration."""

    def recreated(what: str, **fields: Any) -> Change:
        def change(one: DeviceRequest) -> DeviceRequest:
            if one.name != request.name or one.exactly is None:
                return one
            return replace_fields(one, exactly=replace_fields(one.exactly, **fields))

        return _recreated_claim(claim, change, what)

    for index, selector in enumerate(exact.selectors or ()):
        left = tuple(one for number, one in enumerate(exact.selectors or ()) if number != index) or None
        expression = selector.cel.expression if selector.cel is not None else ""
        yield recreated(f"without the selector {expression[:60]}", selectors=left)
    for count in range((exact.count or 1) - 1, 0, -1):
        yield recreated(f"{count} devices", count=count)
    taints: dict[tuple[str, str, str], None] = {}
    for one in devices.passing(_expressions(exact.selectors), devices.of_class(exact.device_class_name)):
        taints.update(((taint.key, taint.value, taint.effect), None) for taint in _untolerated(exact, one))
    for key, value, effect in taints:
        added = DeviceToleration(key=key, operator="Equal" if value else "Exists", value=value, effect=effect)
        yield recreated(f"tolerating {key}", tolerations=(*(exact.tolerations or ()), added))


def _with_free_devices(devices: Devices, claims: ClaimCache, exact: ExactDeviceRequest) -> Iterator[Change]:
    """The deletion of the pods that use one claim with such devices."""
    matching = devices.passing(_expressions(exact.selectors), devices.of_class(exact.device_class_name))
    wanted = {one.id for one in matching}
    for holder in claims:
        allocation = holder.status.allocation
        results = allocation.devices.results or () if allocation is not None else ()
        if any((one.driver, one.pool, one.device) in wanted for one in results):
            users = _users(devices.nodes, [holder])
            if users:
                yield from _freed([holder], users)
                return
