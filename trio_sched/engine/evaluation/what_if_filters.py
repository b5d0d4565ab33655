"""Runs the filters on many nodes at once under an assumption: with pods added that are not there, or removed.

Nodes are judged independently, so one call of an array filter does for all of them; only plugins that count pods on
other nodes (those with add_pod and remove_pod) are called for each node with a cycle state of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import define, field

from trio_sched.engine.evaluation.filtering import filter_one_node
from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_filter, call_status_hook, explain
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns, NodeView


@define(eq=False)
class WhatIfNode:
    """One node under the assumption."""

    position: int
    """In the columns that the filters run on."""
    name: str
    state: CycleState | None = None
    """A state of its own, if a plugin counts pods on other nodes."""
    status: Status | None = None
    """Why the pod does not fit there, as things stand."""


@define(eq=False)
class WhatIfFilters:
    """The filters of a profile, for one pod and the state that its pre_filters have left."""

    profile: Profile
    pod: Pod
    state: CycleState
    filters: list[FilterHook] = field(init=False)
    plugins_with_extensions: frozenset[str] = field(init=False)
    """Plugins with add_pod or remove_pod."""

    def __attrs_post_init__(self) -> None:
        skipped = self.state.skip_filter
        self.filters = [hook for hook in self.profile.filter if hook.plugin not in skipped]
        self.plugins_with_extensions = frozenset(
            (self.profile.add_pod.keys() | self.profile.remove_pod.keys()) - skipped
        )

    def catch_failure(self, node: WhatIfNode, step: Callable[[], None]) -> None:
        """Take *step*; if a plugin fails, that is the status of *node*."""
        try:
            step()
        except HookFailed as failed:
            node.status = failed.status

    def run(self, columns: NodeColumns, nodes: Sequence[WhatIfNode]) -> None:
        """Set the status of those of *nodes* (positions in *columns*) where the pod does not fit.

        Raises:
            HookFailed: a plugin failed.
        """
        fitting = list(nodes)
        for hook in self.filters:
            if not fitting:
                return
            if hook.per_node:
                continue
            if hook.plugin in self.plugins_with_extensions:
                for node in fitting:
                    one = columns.take(slice(node.position, node.position + 1))
                    verdicts = call_filter(hook, self.pod, one, node.state or self.state)
                    code = verdicts.codes[0].item()
                    if code:
                        node.status = explain(hook, verdicts, code)
            else:
                verdicts = call_filter(hook, self.pod, _subset(columns, fitting), self.state)
                if verdicts.passes.all():
                    continue
                explained: dict[int, Status] = {}
                for i in np.flatnonzero(verdicts.codes).tolist():
                    code = verdicts.codes[i].item()
                    if code not in explained:
                        explained[code] = explain(hook, verdicts, code)
                    fitting[i].status = explained[code]
            fitting = [node for node in fitting if node.status is None]
        per_node = [hook for hook in self.filters if hook.per_node]
        if per_node:
            for node in fitting:
                node.status = filter_one_node(per_node, self.pod, columns, node.position, node.state or self.state)

    def add_pod(self, columns: NodeColumns, node: WhatIfNode, added: Pod, elsewhere: NodeView | None = None) -> None:
        """Run the add_pod extensions: for *node*, *added* is there too, or *elsewhere*.

        Raises:
            HookFailed: a plugin failed.
        """
        self._run_extensions(columns, node, added, elsewhere, self.profile.add_pod)

    def remove_pod(
        self, columns: NodeColumns, node: WhatIfNode, removed: Pod, elsewhere: NodeView | None = None
    ) -> None:
        """Run the remove_pod extensions: for *node*, *removed* is not there, or not *elsewhere*.

        Raises:
            HookFailed: a plugin failed.
        """
        self._run_extensions(columns, node, removed, elsewhere, self.profile.remove_pod)

    def _run_extensions(
        self,
        columns: NodeColumns,
        node: WhatIfNode,
        other: Pod,
        elsewhere: NodeView | None,
        hooks: Mapping[str, BoundHook],
    ) -> None:
        if node.state is None:
            return
        view = columns.node(node.position) if elsewhere is None else elsewhere
        for plugin, hook in hooks.items():
            if plugin in self.plugins_with_extensions:
                call_status_hook(hook, self.pod, other, view, node.state)


def _subset(columns: NodeColumns, nodes: Sequence[WhatIfNode]) -> NodeColumns:
    if len(nodes) == 1:
        return columns.take(slice(nodes[0].position, nodes[0].position + 1))
    if len(nodes) == len(columns) and all(node.position == i for i, node in enumerate(nodes)):
        return columns
    return columns.take(np.array([node.position for node in nodes], dtype=np.intp))
