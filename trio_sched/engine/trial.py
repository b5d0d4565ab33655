"""Asks the filters about many nodes at once on which things are not as they are: pods added, pods taken away.

Nodes judge by themselves, so one call of an array filter does for all of them; only plugins that count pods elsewhere
(those with add_pod and remove_pod) look at each node with a state of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import define, field

from trio_sched.engine.filtering import CycleFailed, ask_filter, filter_one_node, plugin_failed
from trio_sched.engine.profile import Call, FilterCaller, Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status
from trio_sched.plugin_api.verdicts import Verdicts
from trio_sched.snapshot.node_columns import NodeColumns


@define(eq=False)
class TriedNode:
    """One node of a trial."""

    position: int
    """In the columns of the trial."""
    name: str
    state: CycleState | None = None
    """Of its own, if a plugin counts pods elsewhere."""
    status: Status | None = None
    """Why the pod does not fit there, as things stand."""


@define(eq=False)
class Trial:
    """The filters of a profile, for one pod and the state that its pre_filters have left."""

    profile: Profile
    pod: Pod
    state: CycleState
    filters: list[FilterCaller] = field(init=False)
    counting: frozenset[str] = field(init=False)
    """Plugins that follow which pods come and go."""

    def __attrs_post_init__(self) -> None:
        skipped = self.state.skip_filter
        self.filters = [caller for caller in self.profile.filter if caller.plugin not in skipped]
        self.counting = frozenset((self.profile.add_pod.keys() | self.profile.remove_pod.keys()) - skipped)

    def guarded(self, node: TriedNode, step: Callable[[], None]) -> None:
        """Take *step*; if a plugin fails, that is the status of *node*."""
        try:
            step()
        except CycleFailed as failed:
            node.status = failed.status

    def judge(self, columns: NodeColumns, nodes: Sequence[TriedNode]) -> None:
        """Set the status of those of *nodes* (positions in *columns*) where the pod does not fit.

        Raises:
            CycleFailed: a plugin failed.
        """
        alive = list(nodes)
        for caller in self.filters:
            if not alive:
                return
            if caller.per_node:
                continue
            if caller.plugin in self.counting:
                for node in alive:
                    one = columns.take(slice(node.position, node.position + 1))
                    verdicts = ask_filter(caller, self.pod, one, node.state or self.state)
                    code = int(verdicts.codes[0])
                    if code:
                        node.status = _explained(caller.plugin, verdicts, code)
            else:
                verdicts = ask_filter(caller, self.pod, _subset(columns, alive), self.state)
                if verdicts.passes.all():
                    continue
                explained: dict[int, Status] = {}
                for i in np.flatnonzero(verdicts.codes).tolist():
                    code = int(verdicts.codes[i])
                    if code not in explained:
                        explained[code] = _explained(caller.plugin, verdicts, code)
                    alive[i].status = explained[code]
            alive = [node for node in alive if node.status is None]
        per_node = [caller for caller in self.filters if caller.per_node]
        if per_node:
            for node in alive:
                node.status = filter_one_node(per_node, self.pod, columns, node.position, node.state or self.state)

    def added(self, columns: NodeColumns, node: TriedNode, other: Pod) -> None:
        """Tell the plugins that count that *other* is on *node* too.

        Raises:
            CycleFailed: a plugin failed.
        """
        self._tell(columns, node, other, "AddPod", self.profile.add_pod)

    def removed(self, columns: NodeColumns, node: TriedNode, other: Pod) -> None:
        """Tell the plugins that count that *other* is not on *node*.

        Raises:
            CycleFailed: a plugin failed.
        """
        self._tell(columns, node, other, "RemovePod", self.profile.remove_pod)

    def _tell(self, columns: NodeColumns, node: TriedNode, other: Pod, verb: str, calls: Mapping[str, Call]) -> None:
        if node.state is None:
            return
        view = columns.node(node.position)
        for plugin, call in calls.items():
            if plugin not in self.counting:
                continue
            prefix = f'running {verb} on PreFilter plugin "{plugin}"'
            try:
                status = call(self.pod, other, view, node.state)
            except Exception as exc:
                raise plugin_failed(prefix, plugin, exc) from exc
            if status is not None and status.code != Code.SUCCESS:
                raise plugin_failed(prefix, plugin, status.error or status.message)


def _explained(plugin: str, verdicts: Verdicts, code: int) -> Status:
    """The status behind *code*.

    Raises:
        CycleFailed: it says that the plugin failed on that node.
    """
    status = verdicts.explain(code)
    if not status.is_rejected:
        raise plugin_failed(f'running "{plugin}" filter plugin', plugin, status.error or status.message)
    return status.by(plugin)


def _subset(columns: NodeColumns, nodes: Sequence[TriedNode]) -> NodeColumns:
    if len(nodes) == 1:
        return columns.take(slice(nodes[0].position, nodes[0].position + 1))
    if len(nodes) == len(columns) and all(node.position == i for i, node in enumerate(nodes)):
        return columns
    return columns.take(np.array([node.position for node in nodes], dtype=np.intp))
