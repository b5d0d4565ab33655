"""Add nodes: so many like one, or as many as it takes until no pod is pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field

from trio_sched.simulation.report.sections import Section, Shown
from trio_sched.simulation.units import plural
from trio_sched.what_if.asking import Action
from trio_sched.what_if.cluster_changes import ClusterChanges, NoSuchNode, pods_of_node, stays_on_node
from trio_sched.what_if.node_pools import Pool, add_nodes, model_of, pools_of

_MOST_IN_VAIN: Final = 8
"""So many nodes at once are added to a pool without any effect, before it is given up: a gang may need several."""


@define(eq=False, kw_only=True)
class AddNodes(Action):
    """Add so many nodes like one, or like those of a pool."""

    like: str
    count: int

    async def change(self, changes: ClusterChanges) -> None:
        """Add them.

        Raises:
            NoSuchPool: there is no such node or pool.
        """
        add_nodes(changes, model_of(changes.store, self.like), self.count)


@define(eq=False, kw_only=True)
class AddUntilPlaced(Action):
    """Add nodes of the cheapest pool that helps, one after the other, until none helps any more."""

    pools: Sequence[str] = ()
    """Which pools, or nodes that stand for theirs; none: all of the cluster."""
    most: int
    """How many nodes at most."""
    added: Counter[str] = field(factory=Counter, init=False)
    """By the name of the pool."""
    known: list[Pool] = field(factory=list, init=False)
    left: int = field(default=0, init=False)
    """Pods that are pending at the end."""

    async def change(self, changes: ClusterChanges) -> None:
        """Add nodes.

        Raises:
            NoSuchPool: there is no such pool.
            NoSuchNode: there are no nodes at all.
        """
        self.known = self._chosen(changes)
        self.left = changes.pending()
        for pool in self.known:
            while self.left and self.added.total() < self.most:
                if not await self._add_one_more(changes, pool):
                    break

    def _chosen(self, changes: ClusterChanges) -> list[Pool]:
        found = pools_of(changes.store)
        if not found:
            raise NoSuchNode("there are no nodes whose like could be added")
        if not self.pools:
            return found
        models = {model_of(changes.store, name) for name in self.pools}
        return [pool for pool in found if pool.model in models or pool.name in self.pools]

    async def _add_one_more(self, changes: ClusterChanges, pool: Pool) -> bool:
        """Add a node of *pool*, or several if one does not help; returns whether that has helped."""
        before, batch = self.left, 1
        tried: list[str] = []
        while len(tried) < _MOST_IN_VAIN and self.added.total() + len(tried) < self.most:
            tried += add_nodes(changes, pool.model, min(batch, self.most - self.added.total() - len(tried)))
            await changes.settle()
            self.left = changes.pending()
            if self.left < before:
                break
            batch *= 2
        unused = [node for node in tried if all(map(stays_on_node, pods_of_node(changes.store, node)))]
        for node in unused:
            await changes.delete_node(node)
        if unused:
            await changes.settle()
        self.added[pool.name] += len(tried) - len(unused)
        return self.left < before

    def problems(self) -> Iterator[str]:
        """What stays pending."""
        if self.left:
            limit = self.added.total() >= self.most
            why = f"more than {plural(self.most, 'node')} would be needed" if limit else "no node of any pool helps"
            yield f"{plural(self.left, 'pod')} would still be pending: {why}"

    def remarks(self) -> Iterator[str]:
        """How many nodes it takes."""
        parts = [f"{count} of {name}" for name, count in self.added.items() if count]
        yield f"nodes added: {', '.join(parts)}" if parts else "no node was added"

    def sections(self) -> Iterator[Section]:
        """How many of which pool, and at which price."""
        yield Section(
            "added",
            "Nodes to add",
            heads=("Pool", "Like", "Nodes", "Price each", "Price"),
            keys=("pool", "like", "count", "priceEach", "price"),
            numbers=("Nodes", "Price each", "Price"),
            rows=[
                (
                    pool.name,
                    pool.model,
                    self.added[pool.name],
                    Shown("-" if pool.price is None else f"{pool.price:g}", pool.price),
                    _price(pool, self.added[pool.name]),
                )
                for pool in self.known
                if self.added[pool.name]
            ],
        )


def _price(pool: Pool, count: int) -> Shown:
    total = None if pool.price is None else pool.price * count
    return Shown("-" if total is None else f"{total:g}", total)
