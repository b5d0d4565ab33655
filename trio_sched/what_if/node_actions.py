"""Drain, remove and cordon nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from attrs import define, field

from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulation.report.sections import Names, Section
from trio_sched.simulation.units import plural
from trio_sched.what_if.asking import Action
from trio_sched.what_if.cluster_changes import ClusterChanges, select_nodes
from trio_sched.what_if.drain import Drained, drain


@define(eq=False, kw_only=True)
class _OfNodes(Action):
    names: Sequence[str]
    selector: str = ""
    nodes: Sequence[str] = field(factory=list, init=False)
    """Those that are meant."""

    async def change(self, changes: ClusterChanges) -> None:
        """Find the nodes, and change them.

        Raises:
            NoSuchNode: one of them is not there.
        """
        self.nodes = select_nodes(changes.store, self.names, self.selector)
        await self.change_nodes(changes)

    @abstractmethod
    async def change_nodes(self, changes: ClusterChanges) -> None:
        """Change `nodes`."""


@define(eq=False, kw_only=True)
class Drain(_OfNodes):
    """Cordon nodes and evict their pods."""

    done: Drained = field(factory=lambda: Drained(()), init=False)

    async def change_nodes(self, changes: ClusterChanges) -> None:
        """Drain `nodes`."""
        self.done = await drain(changes, self.nodes)

    def problems(self) -> Iterator[str]:
        """What cannot be evicted."""
        if self.done.blocked:
            pods = plural(len(self.done.blocked), "pod")
            yield f"{pods} cannot be evicted, so the drain never ends"

    def remarks(self) -> Iterator[str]:
        """In how many waves it works, and what stays."""
        done = self.done
        waves = [wave for wave in done.waves if wave.pods]
        if len(waves) > 1:
            yield f"budgets make it {len(waves)} waves: the next one waits until the pods of the one before run again"
        if done.unmanaged:
            yield f"kubectl drain needs --force for {some_names(done.unmanaged)}, which no controller makes again"
        if done.staying:
            yield f"{plural(done.staying, 'pod')} of DaemonSets and static ones stay where they are"

    def sections(self) -> Iterator[Section]:
        """The order in which it works, and what blocks it."""
        rows = [
            (number, len(wave.pods), Names(wave.emptied), Names(wave.pods))
            for number, wave in enumerate(self.done.waves, 1)
        ]
        yield Section(
            "waves",
            "Order of the drain",
            heads=("Wave", "Evicted", "Empty after it", ""),
            keys=("wave", "", "emptied", "pods"),
            numbers=("Wave", "Evicted"),
            rows=rows,
            is_shown=len(rows) > 1,
        )
        yield Section(
            "blocked",
            "Cannot be evicted",
            heads=("Pod", "Node", "Why"),
            keys=("pod", "node", "why"),
            rows=[(one.pod, one.node, one.why) for one in self.done.blocked],
        )

    def commands(self) -> Iterator[str]:
        """The drain itself."""
        yield self.done.command


@define(eq=False, kw_only=True)
class Remove(_OfNodes):
    """Delete nodes as they are, as if their machines were gone; no budget is asked."""

    async def change_nodes(self, changes: ClusterChanges) -> None:
        """Delete `nodes`."""
        for node in self.nodes:
            await changes.delete_node(node)

    def commands(self) -> Iterator[str]:
        """The deletion."""
        yield f"kubectl delete node {' '.join(self.nodes)}"


@define(eq=False, kw_only=True)
class Cordon(_OfNodes):
    """Let no new pods onto nodes."""

    async def change_nodes(self, changes: ClusterChanges) -> None:
        """Cordon `nodes`."""
        for node in self.nodes:
            await changes.set_cordoned(node, cordoned=True)

    def commands(self) -> Iterator[str]:
        """The cordon."""
        yield f"kubectl cordon {' '.join(self.nodes)}"
