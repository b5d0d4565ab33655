"""Clusters with one pod each that is pending, and what has to be said of it: the cause, and words that name it."""

from collections.abc import Sequence
from typing import Final

from contrib.scenarios.pending_causes.of_combinations import CAUSES_OF_COMBINATIONS
from contrib.scenarios.pending_causes.of_devices import CAUSES_OF_DEVICES
from contrib.scenarios.pending_causes.of_near_misses import CAUSES_OF_NEAR_MISSES
from contrib.scenarios.pending_causes.of_nodes import CAUSES_OF_NODES
from contrib.scenarios.pending_causes.of_volumes import CAUSES_OF_VOLUMES
from contrib.scenarios.pending_causes.of_workloads import CAUSES_OF_WORKLOADS
from contrib.scenarios.pending_causes.pending_cause import PendingCause as PendingCause

CAUSES: Final[Sequence[PendingCause]] = (
    *CAUSES_OF_NODES,
    *CAUSES_OF_NEAR_MISSES,
    *CAUSES_OF_VOLUMES,
    *CAUSES_OF_DEVICES,
    *CAUSES_OF_COMBINATIONS,
    *CAUSES_OF_WORKLOADS,
)
