"""NodeName: filters by ``spec.nodeName``."""

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import (
    Action,
    CycleState,
    EventRegistration,
    Handle,
    Input,
    NodeColumns,
    Pod,
    Resource,
    Verdicts,
    hookimpl,
    on,
    unresolvable,
)

REASON = "node(s) didn't match the requested node name"


class NodeName:
    """Filters out every node but the one in ``spec.nodeName``, if that is set."""

    name: ClassVar[str] = "NodeName"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """All other nodes fail."""
        passes = np.full(len(nodes), not pod.node_name, dtype=np.bool_)
        if pod.node_name:
            position = nodes.position(pod.node_name)
            if position is not None:
                passes[position] = True
        return Verdicts.where(passes, unresolvable(REASON))

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The name in ``spec.nodeName``."""
        return pod.node_name

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A node is added."""
        return [on(Resource.NODE, Action.ADD)]
