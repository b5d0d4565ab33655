"""Would a pod group fit if some pods were not there? Tried on the rows of the nodes, which are put right at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType

from attrs import define, field

from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.pod_info import PodInfo


@define(eq=False)
class PodGroupTrial:
    """See `trio_sched.plugin_api.PodGroupTrial`; a context manager, inside of which nothing may wait.

    Extenders are not asked.
    """

    cycle: PodGroupCycle
    places: Mapping[str, str] = field(factory=dict)
    """UID → node, of the pods of the group when it fit last."""
    began: float | None = None
    """When the first pods were assumed to be gone, by the clock of the measurements."""
    _removed: dict[str, tuple[str, PodInfo]] = field(factory=dict)
    """UID → the node of a pod that is assumed to be gone, and the pod."""

    def __enter__(self) -> PodGroupTrial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for node_name, pod_info in list(self._removed.values()):
            self._put_back(node_name, pod_info)

    @property
    def node_names(self) -> frozenset[str]:
        """The nodes on which the pods of the group were placed when it fit last."""
        return frozenset(self.places.values())

    @property
    def assigned_pods(self) -> Iterator[tuple[Pod, str]]:
        """All pods on nodes that exist, without those of the group itself."""
        own, table = self.cycle.keys, self.cycle.scheduler.cache.table
        for cached in self.cycle.scheduler.cache:
            if cached.node_name in table.row_of and cached.pod.group_key not in own:
                yield cached.pod, cached.node_name

    def remove(self, pods: Iterable[Pod]) -> None:
        """Assume that *pods* are gone."""
        if self.began is None:
            self.began = self.cycle.profile.measured.clock()
        cache = self.cycle.scheduler.cache
        for pod in pods:
            cached = cache.get(pod.uid)
            row = None if cached is None else cache.table.row_of.get(cached.node_name)
            if cached is not None and row is not None and pod.uid not in self._removed:
                self._removed[pod.uid] = cached.node_name, cache.table.remove_pod(row, pod.uid)

    def restore(self, pods: Iterable[Pod]) -> None:
        """Assume no longer that *pods* are gone."""
        for pod in pods:
            removed = self._removed.get(pod.uid)
            if removed is not None:
                self._put_back(*removed)

    def _put_back(self, node_name: str, pod_info: PodInfo) -> None:
        table = self.cycle.scheduler.cache.table
        table.add_pod(table.row_of[node_name], pod_info)
        del self._removed[pod_info.pod.uid]

    def run(self) -> Status | None:
        """Try to schedule the group; None if it fits."""
        result = self.cycle.run_at_once()
        if result.status is None:
            self.places = {pod.info.uid: pod.placed.node_name for pod in result.pods if pod.placed is not None}
        return result.status

    def still_fits(self) -> bool:
        """Whether the pods fit where they were placed when the group fit last."""
        return self.cycle.fits_at(self.places)
