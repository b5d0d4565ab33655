"""Compact a cluster: drain one node after the other, as long as all of its pods find another place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import define, field

from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulation.report.sections import Names, Section
from trio_sched.simulation.units import plural
from trio_sched.what_if.asking import Action
from trio_sched.what_if.cluster_changes import ClusterChanges, is_unmanaged, pods_of_node
from trio_sched.what_if.drain import Drained, drain
from trio_sched.what_if.node_pools import NoSuchPool


@define(eq=False, kw_only=True)
class Compact(Action):
    """Find out how few nodes of each pool hold the workload; each drain is done, and undone if it does not work."""

    pools: Sequence[str] = ()
    """Which pools; none: all."""
    patience: int
    """A pool is left when so many nodes in a row could not be emptied."""
    freed: dict[str, list[str]] = field(factory=dict, init=False)
    """Pool → the nodes that were emptied, in order."""
    drains: list[Drained] = field(factory=list, init=False)
    kept: Counter[str] = field(factory=Counter, init=False)
    """Pool → how many nodes are still needed."""
    unmanaged: list[str] = field(factory=list, init=False)
    """Nodes that stay because of pods that no controller makes again."""

    async def change(self, changes: ClusterChanges) -> None:
        """Drain what can be emptied.

        Raises:
            NoSuchPool: one of the pools is not there.
        """
        outcome = changes.running.outcome()
        members: dict[str, list[tuple[float, str]]] = {}
        for node in outcome.nodes:
            if not self.pools or node.pool in self.pools:
                members.setdefault(node.pool, []).append((node.usage.share("cpu"), node.name))
        for pool in self.pools:
            if pool not in members:
                raise NoSuchPool("pool", pool, [one.name for one in outcome.pools])
        for pool, nodes in members.items():
            await self._compact(changes, pool, [name for _share, name in sorted(nodes)])

    async def _compact(self, changes: ClusterChanges, pool: str, nodes: Sequence[str]) -> None:
        freed, in_vain = self.freed.setdefault(pool, []), 0
        for node in nodes:
            if in_vain >= self.patience:
                break
            stored = changes.store.get("nodes", node)
            assert stored is not None  # nothing here deletes nodes
            if stored.fields["spec"].get("unschedulable"):
                continue
            if any(map(is_unmanaged, pods_of_node(changes.store, node))):
                self.unmanaged.append(node)  # its pods would be gone
                continue
            before = changes.pending()
            drained = await drain(changes, [node])
            if not drained.blocked and changes.pending() <= before:
                freed.append(node)
                self.drains.append(drained)
                in_vain = 0
            else:
                await changes.set_cordoned(node, cordoned=False)
                await changes.settle()
                in_vain += 1
        self.kept[pool] = len(nodes) - len(freed)

    def remarks(self) -> Iterator[str]:
        """How many nodes of each pool are enough."""
        for pool, nodes in self.freed.items():
            of = f" of pool {pool}" if pool != "-" else ""
            total = self.kept[pool] + len(nodes)
            yield f"{self.kept[pool]} of {plural(total, 'node')}{of} are enough; {len(nodes)} can go"

        if self.unmanaged:
            pods = "pods that no controller makes again"
            yield f"{plural(len(self.unmanaged), 'node')} stay because of {pods}: {some_names(self.unmanaged)}"

    def sections(self) -> Iterator[Section]:
        """The nodes that can go, in the order in which they are drained."""
        yield Section(
            "freed",
            "Nodes that can go",
            heads=("Pool", "Needed", "Freed", "In this order"),
            keys=("pool", "needed", "", "freed"),
            numbers=("Needed", "Freed"),
            rows=[(pool, self.kept[pool], len(nodes), Names(tuple(nodes))) for pool, nodes in self.freed.items()],
        )

    def commands(self) -> Iterator[str]:
        """The drains, in order."""
        yield from (one.command for one in self.drains)
