"""Which part of a pod its request for a resource comes from, where that is not simply its containers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from trio_sched.plugin_api import (
    Container,
    Pod,
    ResourceOptions,
    amount_text,
    nano_requests,
    parse_nano,
    replace_fields,
    to_amounts,
)

_LIMIT_RANGER: Final = "kubernetes.io/limit-ranger"
"""The annotation in which the API server notes the requests that it took from a LimitRange."""


def request_origin(pod: Pod, resource: str, options: ResourceOptions) -> str:
    """In words, in brackets and after a blank; empty if the containers' own requests are all there is."""
    found = list(_origins(pod, resource, options))
    return f" ({'; '.join(found)})" if found else ""


def _origins(pod: Pod, resource: str, options: ResourceOptions) -> Iterator[str]:
    spec, unit = pod.spec, " CPU" if resource == "cpu" else ""
    is_of_pod = options.pod_level and spec.resources is not None and bool((spec.resources.requests or {}).get(resource))
    if is_of_pod:
        yield "spec.resources of the whole pod"
    else:
        yield from _of_containers(pod, resource, unit, options)
    overhead = _amount(resource, (spec.overhead or {}).get(resource, 0))
    if overhead:
        yield f"{amount_text(resource, overhead)}{unit} of it overhead of its runtime class"
    if not is_of_pod and _is_default(pod, resource):
        yield f"a default of a LimitRange in namespace {pod.namespace}"


def _of_containers(pod: Pod, resource: str, unit: str, options: ResourceOptions) -> Iterator[str]:
    """The init container that requests more than all that runs later, and sidecars that others run beside."""
    inits = pod.spec.init_containers or ()
    sidecars = [one for one in inits if one.restart_policy == "Always"]
    runs = replace_fields(pod, spec=replace_fields(pod.spec, init_containers=tuple(sidecars)))
    beside: Sequence[Container] = sidecars
    if _total(pod, resource, options) > _total(runs, resource, options):
        most = -1
        for one, earlier in _with_earlier_sidecars(inits):
            amount = _of(one, resource) + sum(_of(sidecar, resource) for sidecar in earlier)
            if amount > most:
                most, largest, beside = amount, one, earlier
        yield f"init container {largest.name} asks for {amount_text(resource, _of(largest, resource))}{unit}"
    for one in beside:
        if _of(one, resource):
            yield f"{amount_text(resource, _of(one, resource))}{unit} of it sidecar {one.name}"


def _is_default(pod: Pod, resource: str) -> bool:
    """Whether the API server notes that a container got its request for *resource* from a LimitRange."""
    noted = (pod.metadata.annotations or {}).get(_LIMIT_RANGER, "").rpartition(": ")[2]
    named = (one.partition(" request for ") for one in noted.split("; "))
    return any(separator and resource in names.split(", ") for names, separator, _container in named)


def _with_earlier_sidecars(inits: Sequence[Container]) -> Iterator[tuple[Container, Sequence[Container]]]:
    """Each init container that ends, with the sidecars that run by then."""
    running: list[Container] = []
    for one in inits:
        if one.restart_policy == "Always":
            running.append(one)
        else:
            yield one, tuple(running)


def _total(pod: Pod, resource: str, options: ResourceOptions) -> int:
    return to_amounts(nano_requests(pod, options)).amount(resource)


def _of(container: Container, resource: str) -> int:
    requests = container.resources.requests if container.resources is not None else None
    return _amount(resource, (requests or {}).get(resource, 0))


def _amount(resource: str, quantity: str | float) -> int:
    return to_amounts({resource: parse_nano(quantity)}).amount(resource)
