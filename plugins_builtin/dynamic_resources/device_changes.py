"""What would give a pending pod its devices: another claim, another class, fewer devices, those of other pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from attrs import evolve

from plugins_builtin.dynamic_resources.claim_writes import FINALIZER
from plugins_builtin.dynamic_resources.matching_devices import CLASS, Devices, WantedDevices, untolerated
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    ClaimCache,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
    Edit,
    ExactDeviceRequest,
    Handle,
    KindNotWatched,
    NodeColumns,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
    PoolDevice,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
    delete_pod,
    edit_pod,
    parse_nano,
    replace_fields,
    some_names,
)

T = TypeVar("T")

_CLAIM: Final = "ResourceClaim"
_TEMPLATE: Final = "ResourceClaimTemplate"
_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of claims that kube-controller-manager makes from templates."""
_MAX_CLASSES: Final = 2
"""Device classes that are tried instead of another."""
_MAX_USERS: Final = 3
"""Pods that one change deletes at most."""
_MAX_SHOWN: Final = 60
"""Letters of a CEL expression that are shown."""


def with_claim(pod: Pod, entry: PodResourceClaim, name: str) -> Edit:
    """*entry* of *pod* refers to the claim *name*."""

    def changed(one: Pod) -> Pod:
        return _with_entry(one, entry.name, resource_claim_name=name, resource_claim_template_name=None)

    return edit_pod(pod, changed)


def _with_entry(pod: Pod, name: str, **fields: str | None) -> Pod:
    """*pod* with other *fields* of the entry *name* of ``spec.resourceClaims``."""
    entries = tuple(
        replace_fields(one, **fields) if one.name == name else one for one in pod.spec.resource_claims or ()
    )
    return replace_fields(pod, spec=replace_fields(pod.spec, resource_claims=entries))


def made_claims(handle: Handle, namespace: str, name: str) -> Iterator[Change]:
    """A claim of that name, for a device of one of the classes."""
    for class_name, spec in _specs(handle):
        made = ResourceClaim(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)
        yield Change(
            title=f"make the device claim {name} (1 of class {class_name})",
            edits=(Edit(kind=_CLAIM, name=name, namespace=namespace, apply=partial(_given, made)),),
            note="what it asks for is a guess",
        )


def _specs(handle: Handle) -> Iterator[tuple[str, ResourceClaimSpec]]:
    """Claims for a device of one of the classes."""
    for known in list(handle.objects(CLASS))[:_MAX_CLASSES]:
        wanted = ExactDeviceRequest(device_class_name=known.name, allocation_mode="ExactCount", count=1)
        requests = (DeviceRequest(name="device", exactly=wanted),)
        yield known.name, replace_fields(ResourceClaimSpec(), devices=DeviceClaim(requests=requests))


# --- templates ------------------------------------------------------------------------------------------------------


def claim_templates(handle: Handle) -> list[ResourceClaimTemplate] | None:
    """All templates of claims; None where nobody has read them."""
    try:
        return list(handle.objects(_TEMPLATE))
    except KindNotWatched:
        return None


def other_template(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> Change:
    """*entry* of *pod* refers to *template*, of which a claim is made."""

    def changed(one: Pod) -> Pod:
        return _with_entry(one, entry.name, resource_claim_template_name=template.name)

    return Change(
        title=f"use the device claim template {template.name}",
        edits=(edit_pod(pod, changed), *_claim_of(pod, entry, template.spec.spec)),
        corrects=True,
    )


def made_template(
    handle: Handle, pod: Pod, entry: PodResourceClaim, name: str, elsewhere: ResourceClaimTemplate | None
) -> Iterator[Change]:
    """The template *name* in the namespace of *pod*: as it is *elsewhere*, else for one device of a class."""
    kind = f"make the device claim template {name}"
    for title, note, spec in (
        [(f"{kind} as in namespace {elsewhere.namespace}", "", elsewhere.spec.spec)]
        if elsewhere is not None
        else [(f"{kind} (1 of class {one})", "what it asks for is a guess", spec) for one, spec in _specs(handle)]
    ):
        metadata = ObjectMeta(name=name, namespace=pod.namespace)
        made = ResourceClaimTemplate(metadata=metadata, spec=ResourceClaimTemplateSpec(spec=spec))
        create = Edit(kind=_TEMPLATE, name=name, namespace=pod.namespace, apply=partial(_given, made))
        yield Change(title=title, edits=(create, *_claim_of(pod, entry, spec)), note=note)


def _claim_of(pod: Pod, entry: PodResourceClaim, spec: ResourceClaimSpec) -> tuple[Edit, Edit]:
    """What kube-controller-manager makes of a template: a claim, and its name in the status of the pod."""
    name = f"{pod.name}-{entry.name}"
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    metadata = ObjectMeta(
        name=name,
        namespace=pod.namespace,
        annotations={_POD_CLAIM: entry.name},
        owner_references=(owner,),
    )
    made = ResourceClaim(metadata=metadata, spec=spec)

    def noted(one: Pod) -> Pod:
        others = [other for other in one.status.resource_claim_statuses or () if other.name != entry.name]
        mine = PodResourceClaimStatus(name=entry.name, resource_claim_name=name)
        return replace_fields(one, status=replace_fields(one.status, resource_claim_statuses=(*others, mine)))

    create = Edit(kind=_CLAIM, name=name, namespace=pod.namespace, apply=partial(_given, made), is_consequence=True)
    return create, evolve(edit_pod(pod, noted), is_consequence=True)


def _given(made: T, _old: Any) -> T:
    return made


def once_deleted(handle: Handle, claim: ResourceClaim, _nodes: BoolArray) -> Iterator[Change]:
    """*claim* made again, once the pods that use it are gone, and what else holds it."""
    users = users_of(handle.nodes, claim)
    if len(users) > _MAX_USERS:
        return
    made = ResourceClaim(metadata=ObjectMeta(name=claim.name, namespace=claim.namespace), spec=claim.spec)
    edit = partial(Edit, kind=_CLAIM, name=claim.name, namespace=claim.namespace, recreate=True)
    names = f"delete {some_names([one.key for one in users])} and make" if users else "make"
    title = f"{names} the device claim {claim.name} again once the old one is gone"
    others = sorted(set(claim.metadata.finalizers or ()) - {FINALIZER})
    note = "what has set the finalizers is to remove them, after work of its own" if others else ""
    title += f", without the finalizers {some_names(others)}" if others else ""
    yield Change(title=title, edits=(*map(delete_pod, users), edit(apply=partial(_given, made))), note=note)


def other_class(
    handle: Handle, claim: ResourceClaim, name: str, near: str | None, _nodes: BoolArray
) -> Iterator[Change]:
    """Another class in place of *name*, or a class of that name."""
    known: list[DeviceClass] = [one for one in handle.objects(CLASS) if near is None or one.name == near]
    for one in known[:_MAX_CLASSES]:
        renamed = partial(_with_class, old=name, new=one.name)
        yield evolve(recreated_claim(claim, renamed, f"device class {one.name}"), corrects=near is not None)
    model = known[0] if known else DeviceClass()
    metadata = replace_fields(model.metadata, name=name, uid="", resource_version="")
    made = replace_fields(model, metadata=metadata)
    edit = Edit(kind=CLASS, name=name, apply=lambda _none: made)
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


def recreated_claim(claim: ResourceClaim, change: Callable[[DeviceRequest], DeviceRequest], what: str) -> Change:
    """*claim* with changed requests."""
    return _recreated(claim, what, requests=tuple(map(change, claim.spec.devices.requests or ())))


def _recreated(claim: ResourceClaim, what: str, **fields: Any) -> Change:
    """*claim* with other *fields*: they cannot be changed, so it is recreated."""

    def changed(one: Any) -> Any:
        return replace_fields(one, spec=replace_fields(one.spec, devices=replace_fields(one.spec.devices, **fields)))

    edit = Edit(kind=_CLAIM, name=claim.name, namespace=claim.namespace, apply=changed, recreate=True)
    is_of_template = _POD_CLAIM in (claim.metadata.annotations or {})
    note = "claims of other pods are made from the template as it is" if is_of_template else ""
    return Change(title=f"recreate the device claim {claim.name}: {what}", edits=(edit,), note=note)


def users_of(nodes: NodeColumns, claim: ResourceClaim) -> list[Pod]:
    """The running pods that use *claim*."""
    uids = {one.uid for one in claim.status.reserved_for or ()}
    return [pod for node in nodes for pod in node.pods if pod.uid in uids] if uids else []


def freed(claim: ResourceClaim, users: Sequence[Pod]) -> Iterator[Change]:
    """The deletion of all pods that use *claim*, whose devices are free then."""
    if not 0 < len(users) <= _MAX_USERS:
        return

    def unused(one: Any) -> Any:
        return replace_fields(one, status=replace_fields(one.status, allocation=None, reserved_for=None))

    edit = Edit(kind=_CLAIM, name=claim.name, namespace=claim.namespace, apply=unused, is_consequence=True)
    yield Change(title=f"delete {some_names([one.key for one in users])}", edits=(*map(delete_pod, users), edit))


def _without_each(items: Sequence[T] | None) -> Iterator[tuple[T, tuple[T, ...] | None]]:
    """Each of *items*, and the others; None if there are none."""
    for index, one in enumerate(items or ()):
        yield one, tuple(other for number, other in enumerate(items or ()) if number != index) or None


def without_constraints(claim: ResourceClaim) -> Iterator[Change]:
    """The claim without one of its constraints."""
    for one, left in _without_each(claim.spec.devices.constraints):
        yield _recreated(claim, f"without the constraint: {constraint_text(one)}", constraints=left)


def constraint_text(one: DeviceConstraint) -> str:
    """What *one* asks for."""
    of = f" for {', '.join(one.requests)}" if one.requests else ""
    if one.match_attribute:
        return f"the same {one.match_attribute}{of}"
    return f"another {one.distinct_attribute} each{of}" if one.distinct_attribute else "of a kind that is not known"


def class_without_selectors(devices: Devices, name: str) -> Iterator[Change]:
    """The class *name* without a selector that takes none of the devices that there are."""
    found: DeviceClass | None = devices.handle.object(CLASS, name)
    selectors = found.spec.selectors or () if found is not None else ()
    for selector, left in _without_each(selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        if devices.passing([expression], devices.all()):
            continue
        edit = Edit(kind=CLASS, name=name, apply=partial(with_selectors, selectors=left))
        yield Change(title=f"device class {name} without the selector {expression[:_MAX_SHOWN]}", edits=(edit,))


def with_selectors(one: Any, selectors: Any) -> Any:
    """A device class with other *selectors*."""
    return replace_fields(one, spec=replace_fields(one.spec, selectors=selectors))


def smaller_claims(
    devices: Devices, claim: ResourceClaim, request: DeviceRequest, wanted: WantedDevices
) -> Iterator[Change]:
    """The claim with fewer devices, without a selector, with less of a capacity, or with a toleration.

    Args:
        devices: of all nodes.
        claim: which has none of them.
        request: one of its requests.
        wanted: what that asks for, or one of its alternatives.
    """

    def recreated(what: str, **fields: Any) -> Change:
        return recreated_claim(claim, partial(with_fields, of=request, wanted=wanted, fields=fields), what)

    for selector, left in _without_each(wanted.selectors):
        expression = selector.cel.expression if selector.cel is not None else ""
        yield recreated(f"without the selector {expression[:_MAX_SHOWN]}", selectors=left)
    there = devices.matching(wanted)
    for count in range(min((wanted.count or 1) - 1, len(there)), 0, -1):
        change = recreated(f"{count} devices of class {wanted.device_class_name}", count=count)
        yield evolve(change, series=f"devices of {claim.name}, {request.name}, {wanted.device_class_name}")
    asked = wanted.capacity
    for name, amount in ((asked.requests or {}) if asked is not None else {}).items():
        capacities = [(one.device.capacity or {}).get(name) for one in there]
        found = [one.value for one in capacities if one is not None]
        most = max(found, key=parse_nano, default=None)
        if asked is not None and most is not None and parse_nano(most) < parse_nano(amount):
            requests = {**(asked.requests or {}), name: most}
            yield recreated(f"{name} {most}", capacity=replace_fields(asked, requests=requests))
    taints: dict[tuple[str, str, str], None] = {}
    for one in there:
        taints.update(((taint.key, taint.value, taint.effect), None) for taint in untolerated(wanted, one))
    for key, value, effect in taints:
        added = DeviceToleration(key=key, operator="Equal" if value else "Exists", value=value, effect=effect)
        yield recreated(f"tolerating {key}", tolerations=(*(wanted.tolerations or ()), added))


def with_fields(
    one: DeviceRequest, *, of: DeviceRequest, wanted: WantedDevices, fields: Mapping[str, Any]
) -> DeviceRequest:
    """*one* with other *fields* in *wanted*, if it is the request *of* which that is a part."""
    if one.name != of.name:
        return one
    if one.exactly is not None:
        return replace_fields(one, exactly=replace_fields(one.exactly, **fields))
    alternatives = tuple(
        replace_fields(other, **fields) if other == wanted else other for other in one.first_available or ()
    )
    return replace_fields(one, first_available=alternatives)


def with_free_devices(devices: Devices, claims: ClaimCache, wanted: WantedDevices) -> Iterator[Change]:
    """The deletion of the pods that use one claim with such devices, or with others that share their counters."""
    matching = devices.matching(wanted)
    sharing = [user for one in filter(devices.is_free, matching) for user in devices.short_counters(one)[1]]
    for holder in holders_of(claims, (*matching, *sharing)):
        users = users_of(devices.nodes, holder)
        if users:
            yield from freed(holder, users)
            return


def holders_of(claims: ClaimCache, devices: Sequence[PoolDevice]) -> Iterator[ResourceClaim]:
    """The claims that have one of *devices*."""
    wanted = {one.id for one in devices}
    for holder in claims:
        allocation = holder.status.allocation
        results = allocation.devices.results or () if allocation is not None else ()
        if any((one.driver, one.pool, one.device) in wanted for one in results):
            yield holder
