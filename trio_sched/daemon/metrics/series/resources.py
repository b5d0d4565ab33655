"""What each pod requests and is limited to, for ``/metrics/resources``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.daemon.metrics.families.exposed import Series
from trio_sched.objects.amounts.quantity import NANO
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import nano_limits, nano_requests

_UNITS: Final = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}
_MILLI: Final = NANO // 1000
_OVER: Final = frozenset({"Succeeded", "Failed"})


def sort_key(pod: Pod) -> tuple[str, str, str]:
    """Pods in this order have their series in the order of the page."""
    return pod.namespace, pod.spec.node_name, pod.name


def series_of(pod: Pod, *, limits: bool) -> Iterator[Series]:
    """The series of one pod, in the order of the page: namespace, node, pod, priority, resource, scheduler, unit.

    Args:
        pod: the pod; one that is over has none.
        limits: its limits instead of its requests.
    """
    spec = pod.spec
    if spec.node_name and pod.status.phase in _OVER:
        return
    amounts = nano_limits(pod) if limits else nano_requests(pod)
    priority = "" if spec.priority is None else str(spec.priority)
    for resource in sorted(amounts):
        amount = amounts[resource]
        if amount:
            labels = (pod.namespace, spec.node_name, pod.name, priority, resource, spec.scheduler_name, unit(resource))
            yield labels, approximate(amount)


def unit(resource: str) -> str:
    """The unit of *resource* as the label says it."""
    if resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else _UNITS.get(resource, "")


def approximate(nano: int) -> float:
    """An exact amount as a float, rounded as Kubernetes does: digits times a power of ten."""
    if nano % NANO == 0:
        return float(nano // NANO)
    return nano // _MILLI * 1e-3 if nano % _MILLI == 0 else nano * 1e-9
