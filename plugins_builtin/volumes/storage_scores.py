"""Scores nodes by the utilization of the storage that a pod would get its volumes from."""

from __future__ import annotations

from collections.abc import Sequence

from plugins_builtin.resources.resource_scores import utilization_scores
from plugins_builtin.volumes.pod_volumes import PodVolumes
from plugins_builtin.volumes.volumes import capacity_nano, requested_nano, whole_bytes
from trio_sched.plugin_api import UtilizationShapePoint


class StorageScorer:
    """Scores utilization by the points of *shape*; used with the feature gate StorageCapacityScoring."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._score_of_utilization = utilization_scores(shape)

    def score(self, volumes: PodVolumes) -> int:
        """0..100 for a node on which a pod would get *volumes*: the mean over their storage classes."""
        by_class: dict[str, tuple[int, int]] = {}
        for volume, claim in volumes.static_bindings:
            name = volume.spec.storage_class_name
            requested, capacity = by_class.get(name, (0, 0))
            requested += whole_bytes(requested_nano(claim))
            by_class[name] = requested, capacity + whole_bytes(capacity_nano(volume))
        if not volumes.static_bindings:
            for provision in volumes.dynamic_provisions:
                if provision.pool is not None:
                    name = provision.claim.spec.storage_class_name or ""
                    requested = by_class.get(name, (0, 0))[0] + whole_bytes(requested_nano(provision.claim))
                    # All claims of a class are assumed to come from one pool: that of the last claim.
                    by_class[name] = requested, provision.pool.capacity
        if not by_class:
            return 0
        total = sum(self._of_class(requested, capacity) for requested, capacity in by_class.values())
        return (2 * total + len(by_class)) // (2 * len(by_class))  # the mean, halves rounded up

    def _of_class(self, requested: int, capacity: int) -> int:
        is_full = capacity == 0 or requested > capacity
        return int(self._score_of_utilization[100 if is_full else requested * 100 // capacity])
