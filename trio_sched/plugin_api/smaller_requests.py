"""A pod that requests less of a resource."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from trio_sched.objects.amounts.amount_text import amount_text, quantity_text
from trio_sched.objects.amounts.quantity import Quantity, parse_nano
from trio_sched.objects.pod import Container, Pod
from trio_sched.objects.pod_requests import ResourceOptions, nano_requests, to_amounts
from trio_sched.plugin_api.clauses import Change, edit_pod

_LOWEST: Final = 1
"""No request becomes smaller than this."""


def smaller_request(pod: Pod, resource: str, most: int, options: ResourceOptions, *, where: str = "") -> Change | None:
    """The change that *pod* requests so much of *resource*, or less; see `with_request`.

    Args:
        pod: the pod in question.
        resource: the name of the resource.
        most: what it may request (milli-CPU, bytes or a count).
        options: which parts of a pod count.
        where: the end of the title, if more than the pod is changed.

    Returns:
        None if the pod cannot request exactly so much.
    """

    def lowered(one: Pod) -> Pod:
        found = with_request(one, resource, most, options)
        return one if found is None else found

    if with_request(pod, resource, most, options) is None:
        return None
    title = f"request {resource} ≤ {amount_text(resource, most)}{where}"
    return Change(title=title, edits=(edit_pod(pod, lowered),))


def with_request(pod: Pod, resource: str, most: int, options: ResourceOptions) -> Pod | None:
    """*pod* with requests for *resource* that add up to *most* (milli-CPU, bytes or a count).

    The container that requests most gives first. A limit that was equal to the request stays equal to it.

    Returns:
        None if that cannot be reached by smaller requests of containers.
    """
    of_pod = pod.spec.resources
    if of_pod is not None and resource in (of_pod.requests or {}):
        # The containers together may not request more than the pod.
        containers = _with_spec(pod, resources=None)
        if _total(containers, resource, options) > most:
            lower = with_request(containers, resource, most, options)
            if lower is None:
                return None
            pod = _with_spec(lower, resources=of_pod)
    excess = _total(pod, resource, options) - most
    changed = pod
    while excess > 0:
        before = excess
        changed = _give(changed, resource, excess)
        excess = _total(changed, resource, options) - most
        if excess >= before:
            return None
    return changed if excess == 0 else None


def _with_spec(pod: Pod, **fields: object) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, **fields))


def _total(pod: Pod, resource: str, options: ResourceOptions) -> int:
    return to_amounts(nano_requests(pod, options)).amount(resource)


def _give(pod: Pod, resource: str, excess: int) -> Pod:
    """*pod* whose largest request for *resource* is smaller by *excess*, but not smaller than `_LOWEST`."""
    spec = pod.spec
    if spec.resources is not None and resource in (spec.resources.requests or {}):
        amount = _amount(resource, (spec.resources.requests or {})[resource])
        resources = _replaced(spec.resources, resource, max(amount - excess, _LOWEST))
        return _with_spec(pod, resources=resources)
    found: tuple[int, str, int] | None = None
    for attribute, index, container in _containers(pod):
        requests = (container.resources.requests if container.resources is not None else None) or {}
        if resource in requests:
            amount = _amount(resource, requests[resource])
            if amount > _LOWEST and (found is None or amount > found[0]):
                found = (amount, attribute, index)
    if found is None:
        return pod
    amount, attribute, index = found
    containers = list(getattr(spec, attribute))
    resources = _replaced(containers[index].resources, resource, max(amount - excess, _LOWEST))
    containers[index] = structs.replace(containers[index], resources=resources)
    return _with_spec(pod, **{attribute: tuple(containers)})


def _containers(pod: Pod) -> Iterable[tuple[str, int, Container]]:
    for attribute in ("containers", "init_containers"):
        for index, container in enumerate(getattr(pod.spec, attribute) or ()):
            yield attribute, index, container


def _amount(resource: str, quantity: Quantity) -> int:
    return to_amounts({resource: parse_nano(quantity)}).amount(resource)


def _replaced(resources: object, resource: str, amount: int) -> object:
    """The requirements of a container, or of a pod, with another request for *resource*."""
    requests = dict(getattr(resources, "requests", None) or {})
    limits: dict[str, Quantity] | None = getattr(resources, "limits", None)
    before, quantity = requests.get(resource), quantity_text(resource, amount)
    requests[resource] = quantity
    limit = None if limits is None else limits.get(resource)
    if limits is not None and limit is not None and before is not None and parse_nano(limit) == parse_nano(before):
        limits = {**limits, resource: quantity}
    return structs.replace(resources, requests=requests, limits=limits)  # type: ignore[type-var]
