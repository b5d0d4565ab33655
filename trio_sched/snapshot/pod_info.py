"""A pod on a node, and the pods of each row."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import define

from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import PodResources


@define(eq=False, slots=True)
class PodInfo:
    """A pod on a node, with what it takes from it."""

    pod: Pod
    resources: PodResources


PodsByRow = Sequence[Mapping[str, PodInfo]]
"""The pods on the node of each row, by UID."""


def each_pod_info(pods: PodsByRow) -> Iterator[tuple[int, PodInfo]]:
    """All of *pods*, each with its row."""
    for row, on_row in enumerate(pods):
        for pod_info in on_row.values():
            yield row, pod_info


def each_pod(pods: PodsByRow) -> Iterator[tuple[int, Pod]]:
    """The pods by row, without what they take."""
    return ((row, pod_info.pod) for row, pod_info in each_pod_info(pods))
