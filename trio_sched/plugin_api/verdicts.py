"""What hooks take and return besides Status: verdicts per node, results with more than a status, diagnoses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np
from attrs import field, frozen
from attrs.validators import and_, instance_of, min_len
from numpy.typing import NDArray

from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.arrays import Int64Array

MAX_SCORE: Final = 100
"""The highest score of a node, and that of a placement: scores are from 0 to this, once they are normalized."""
CodeArray = NDArray[np.signedinteger[Any]]
"""Shape (nodes,): numbers that stand for statuses."""


class Input(Enum):
    """What a plugin's result for one node depends on, besides the pod."""

    NODE = "node"
    """The node object: labels, annotations, taints, allocatable, features."""
    PODS = "pods"
    """The pods on that node: their requests, number, host ports."""
    AMOUNTS = "amounts"
    """In place of NODE and PODS: what the node has allocatable, what its pods request in sum, and how many they are.

    Then nodes with equal amounts are judged once.
    """
    ALL_NODES = "all nodes"
    """The other node objects too: how many there are, what images they have."""


@frozen(order=True)
class Domain:
    """A member of ``depends_on``, beside those of `Input`: the nodes with the same value of a label, as of a zone.

    ``Domain("topology.kubernetes.io/zone")`` says that a plugin's result for one node depends on the nodes of its zone
    and on the pods on them, `Input.NODE` and `Input.PODS` included. Once something on a node changes, results for all
    nodes of its zone are computed again, and for no others. A node without the label depends on itself only. The hooks
    look at the zone by ``nodes.domain_counts`` or ``handle.nodes``; what pre_filter and pre_score store is computed
    once per signature and must not depend on it.
    """

    key: str = field(validator=and_(instance_of(str), min_len(1)))
    """The label of nodes."""

    @property
    def name(self) -> str:
        """How `trio-sched plugins` shows it."""
        return f"DOMAIN({self.key})"


@frozen(eq=False)
class Verdicts:
    """What a filter returns for all nodes at once.

    *codes* has shape (nodes,): 0 where the node passes, else any number that *explain* turns into the Status of that
    node (or booleans: True fails). With numbers the common case is fast: *explain* is called when a reason is needed.
    """

    codes: CodeArray | NDArray[np.bool_]
    explain: Callable[[int], Status]
    may_fail: bool = False
    """Whether *explain* can return Error: on a node that passed the filters before, that ends the cycle."""

    @classmethod
    def where(cls, passes: NDArray[np.bool_], otherwise: Status) -> Verdicts:
        """Nodes for which *passes* is false get the status *otherwise*.

        Raises:
            TypeError: *passes* is no array of booleans, or *otherwise* no Status.
        """
        if not isinstance(passes, np.ndarray) or passes.dtype != np.bool_:
            got = f"an array of {passes.dtype}" if isinstance(passes, np.ndarray) else type(passes).__name__
            raise TypeError(f"Verdicts.where takes passes as an array of booleans, one for each node, not as {got}")
        if not isinstance(otherwise, Status):
            got = type(otherwise).__name__
            raise TypeError(f'Verdicts.where takes otherwise as a Status, unschedulable("why") for instance, not {got}')
        return cls(~passes, lambda _code: otherwise)

    @property
    def passes(self) -> NDArray[np.bool_]:
        """Shape (nodes,): which nodes pass."""
        codes: NDArray[Any] = self.codes
        passes: NDArray[np.bool_] = ~codes if codes.dtype == np.bool_ else codes == 0
        return passes


@frozen
class PreFilterResult:
    """The names of the only nodes to evaluate; None means all."""

    node_names: frozenset[str] | None = None


@frozen
class Wait:
    """Returned by permit: the pod waits for ``WaitingPod.allow``.

    It is rejected after *timeout_seconds*, or after 15 minutes if that is earlier.
    """

    timeout_seconds: float
    message: str = ""
    """Why: shown in the log, by ``/debug/scheduler/queue`` and by ``trio-sched simulate``.

    The pods of a group that is not scheduled have it in their condition.
    """


@frozen
class PostFilterResult:
    """Returned by post_filter: a nomination, and the status of the phase."""

    status: Status | None = None
    """None: the pod can be scheduled in a later attempt. Unschedulable: this plugin cannot make room."""
    nominated_node_name: str | None = None
    """None leaves the pod's nomination as it is, "" clears it."""


@frozen
class PreFlight:
    """Returned by pre_bind_pre_flight: pre_bind has something to do."""

    allow_parallel: bool = False
    """Whether it may run concurrently with other plugins that allow it too."""


@frozen(eq=False)
class NodeStatuses:
    """Why each node was rejected, as post_filter sees it.

    Thousands of nodes fail for a handful of reasons, so nodes are grouped by status; names are looked up when needed.
    """

    groups: tuple[tuple[Status, Sequence[int]], ...]
    """The distinct statuses, each with the positions in *names* of the nodes that got it."""
    names: Sequence[str]
    absent: Status
    """The status of all nodes that were not evaluated."""

    @classmethod
    def of(cls, by_node: Mapping[str, Status], absent: Status) -> NodeStatuses:
        """Statuses by node name."""
        return cls(tuple((status, (i,)) for i, status in enumerate(by_node.values())), tuple(by_node), absent)

    def counts(self) -> list[tuple[Status, int]]:
        """Every status with the number of nodes that got it."""
        return [(status, len(positions)) for status, positions in self.groups]

    def by_node(self) -> dict[str, Status]:
        """The statuses of the nodes that were evaluated, by name."""
        return {self.names[i]: status for status, positions in self.groups for i in positions}

    def get(self, node_name: str) -> Status:
        """The status of *node_name*; for many nodes call `by_node` once."""
        return self.by_node().get(node_name, self.absent)


@frozen(eq=False)
class QueuedPod:
    """A pod in the queue, as queue_sort sees it. Times are seconds of the scheduler's clock."""

    pod: Pod
    timestamp: float
    attempts: int = 0


@frozen
class Diagnosis:
    """Why a pod fits on no node."""

    statuses: NodeStatuses
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    post_filter_message: str = ""
    total_nodes: int = field(default=0, kw_only=True)


def int_scores(values: Iterable[int] | NDArray[Any]) -> NDArray[np.int64]:
    """*values* as an array of scores; floats are truncated."""
    return np.asarray(values if isinstance(values, np.ndarray) else list(values)).astype(np.int64)


def default_normalize_score(scores: Int64Array, *, reverse: bool = False) -> Int64Array:
    """Scale *scores*, none of them negative, so that the highest becomes 100.

    What most plugins return from `normalize_score`.

    Args:
        scores: shape (nodes,).
        reverse: 0 becomes 100 instead, and the highest 0.

    Source: DefaultNormalizeScore of Kubernetes 1.36; whole numbers, truncated.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    if highest < len(scores):  # fewer divisions: one for each possible score instead of one for each node
        table = np.arange(highest + 1, dtype=np.int64) * MAX_SCORE // highest
        return (MAX_SCORE - table if reverse else table)[scores]
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
