"""All extenders together: which one is called when, in which order, and how their results are combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field

from trio_sched.config.schema import Extender as ExtenderConfig
from trio_sched.daemon.extenders.extender import Extender
from trio_sched.daemon.extenders.extender_error import ExtenderError
from trio_sched.daemon.extenders.extender_wire import MetaVictims, NodeNameToVictims
from trio_sched.engine.evaluation.extender_cycle import ExtenderResult, ExtenderVerdict
from trio_sched.go.text import quote
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns

if TYPE_CHECKING:
    import httpx


@define(eq=False)
class Extenders:
    """The extenders of the configuration; there is at least one."""

    extenders: tuple[Extender, ...]
    """In the order in which they are called: those that may be ignored come last."""
    _columns: Callable[[], NodeColumns]
    """Returns all nodes as they are now."""
    _deciding: tuple[Extender, ...] = field(init=False)
    _binding: tuple[Extender, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._deciding = tuple(
            extender
            for extender in self.extenders
            if extender.config.filter_verb or extender.config.prioritize_verb or extender.config.preempt_verb
        )
        self._binding = tuple(extender for extender in self.extenders if extender.config.bind_verb)

    @classmethod
    def from_config(
        cls,
        configs: Iterable[ExtenderConfig],
        columns: Callable[[], NodeColumns],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> Extenders:
        """The extenders that *configs* describe; see `Extender.from_config`.

        Raises:
            ExtenderError: certificates of one are not usable.
        """
        in_order = sorted(configs, key=lambda config: config.ignorable)
        return cls(tuple(Extender.from_config(config, transport) for config in in_order), columns)

    async def close_on_exit(self) -> None:
        """Wait until cancelled, then close all connections."""
        try:
            await trio.sleep_forever()
        finally:
            for extender in self.extenders:
                extender.close()

    # --- interest in pods -------------------------------------------------------------------------------------------

    def is_interested(self, pod: Pod) -> bool:
        """Whether some extender takes part in choosing the node of *pod*, or its victims."""
        return any(extender.is_interested(pod) for extender in self._deciding)

    def binds(self, pod: Pod) -> bool:
        """Whether some extender may bind *pod* instead of the plugins."""
        return any(extender.is_interested(pod) for extender in self._binding)

    # --- deciding ---------------------------------------------------------------------------------------------------

    async def filter_and_prioritize(self, pod: Pod, nodes: Mapping[str, Node]) -> ExtenderResult:
        """Which of *nodes* are left for *pod*, why others are not, and the scores of those that are.

        Raises:
            ExtenderError: one that filters failed and may not be ignored.
        """
        left, statuses = await self._filter(pod, nodes)
        scores = await self._prioritize(pod, left) if len(left) > 1 else {}
        return ExtenderResult(names=tuple(left), statuses=statuses, scores=scores)

    async def _filter(self, pod: Pod, nodes: Mapping[str, Node]) -> tuple[Mapping[str, Node], dict[str, Status]]:
        """Call one after the other, each with the nodes that those before it left."""
        statuses: dict[str, Status] = {}
        for extender in self._deciding:
            if not nodes:
                break
            if not extender.is_interested(pod):
                continue
            try:
                filtered = await extender.filter(pod, nodes)
            except ExtenderError:
                if not extender.is_ignorable:
                    raise
                continue  # it has been logged
            statuses |= filtered.statuses
            nodes = {name: nodes[name] for name in filtered.names}
        return nodes, statuses

    async def verdicts(self, pod: Pod, nodes: Mapping[str, Node]) -> list[ExtenderVerdict]:
        """What each says of *nodes*, one after the other; after one that fails and may not be ignored no other is."""
        found: list[ExtenderVerdict] = []
        for extender in self._deciding:
            if not nodes or not extender.config.filter_verb or not extender.is_interested(pod):
                continue
            try:
                filtered = await extender.filter(pod, nodes)
            except ExtenderError as failed:
                may_be = extender.is_ignorable
                found.append(ExtenderVerdict(name=extender.name, refused={}, problem=str(failed), is_ignorable=may_be))
                if not may_be:
                    break
                continue
            left = set(filtered.names)
            refused = {name: filtered.statuses[name].message if name in filtered.statuses else "" for name in nodes}
            found.append(
                ExtenderVerdict(
                    name=extender.name, refused={name: why for name, why in refused.items() if name not in left}
                )
            )
            nodes = {name: node for name, node in nodes.items() if name in left}
        return found

    async def _prioritize(self, pod: Pod, nodes: Mapping[str, Node]) -> dict[str, int]:
        """Call all at once; one that fails adds no scores."""
        totals: dict[str, int] = {}

        async def add_scores(extender: Extender) -> None:
            try:
                added = await extender.prioritize(pod, nodes)
            except ExtenderError:
                return  # it has been logged
            for name, score in added.items():
                totals[name] = totals.get(name, 0) + score

        async with trio.open_nursery() as nursery:
            for extender in self._deciding:
                if extender.config.prioritize_verb and extender.is_interested(pod):
                    nursery.start_soon(add_scores, extender)
        return {name: _as_int64(total) for name, total in totals.items()}

    # --- binding ----------------------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Have an extender bind *pod*; returns False if that is left to the plugins.

        Raises:
            ExtenderError: the one that is to bind it failed.
        """
        for extender in self._binding:
            if not extender.is_interested(pod):
                continue
            try:
                await extender.bind(pod, node_name)
            except ExtenderError:
                if not extender.is_ignorable:
                    raise
                continue
            return True
        return False

    # --- preempting -------------------------------------------------------------------------------------------------

    async def process_preemption(self, pod: Pod, candidates: NodeNameToVictims) -> NodeNameToVictims:
        """What the extenders leave of *candidates*: fewer nodes, other victims; each is called with what is left.

        Raises:
            ExtenderError: one failed and may not be ignored, or its response names unknown nodes or pods.
        """
        if not candidates:
            return candidates
        for extender in self._deciding:
            if not extender.config.preempt_verb or not extender.is_interested(pod):
                continue
            try:
                chosen = await extender.process_preemption(
                    pod, candidates, partial(self._resolve, extender, candidates)
                )
            except ExtenderError:
                if not extender.is_ignorable:
                    raise
                continue
            candidates = {name: victims for name, victims in chosen.items() if _has_victims(extender, name, victims)}
            if not candidates:
                break
        return candidates

    def _resolve(
        self, extender: Extender, asked: NodeNameToVictims, response: Mapping[str, MetaVictims]
    ) -> NodeNameToVictims:
        """The pods with the UIDs in *response*, which must be on the nodes that *response* says.

        Or on other nodes, if it was *asked* about them for those: they leave with another pod of their group.

        Raises:
            ExtenderError: there is no such node, or no such pod on it.
        """
        columns = self._columns()
        chosen: dict[str, tuple[list[Pod], int]] = {}
        for name, victims in response.items():
            position = columns.position(name)
            if position is None:
                raise ExtenderError(f"nodeinfo not found for node name {quote(name)}")
            of_groups, _violations = asked.get(name, ((), 0))
            there = {pod.uid: pod for pod in of_groups if pod.node_name not in ("", name)}
            there |= {pod.uid: pod for pod in columns.node(position).pods}
            pods: list[Pod] = []
            for uid in victims.uids:
                if uid not in there:
                    raise ExtenderError(
                        f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, "
                        "but the pod is not found on that node"
                    )
                pods.append(there[uid])
            chosen[name] = (pods, victims.pdb_violations)
        return chosen


def _as_int64(number: int) -> int:
    """*number* as 64 signed bits hold it: the totals of kube-scheduler overflow without an error, and so do these."""
    return (number + 2**63) % 2**64 - 2**63


def _has_victims(extender: Extender, node_name: str, victims: Any) -> bool:
    """Whether there are victims on the node.

    Raises:
        ExtenderError: there are none, and the extender may not be ignored.
    """
    pods, _violations = victims
    if not pods and not extender.is_ignorable:
        raise ExtenderError(f"expected at least one victim pod on node {quote(node_name)}")
    return bool(pods)


# --- what extenders are sent ----------------------------------------------------------------------------------------
