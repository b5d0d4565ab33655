"""Nodes that a label has brought into a shard are used once every holder of a shard has seen it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import trio
from attrs import define, field

from trio_sched.daemon.sharding.held_shard import HeldShard
from trio_sched.engine.sharding.owned_shards import OwnedShards, all_have_seen


class TakesOverNodes(Protocol):
    """What is asked for before anything is decided for nodes that have come into a held shard."""

    async def take_over_nodes(self, names: Collection[str], held: tuple[HeldShard, ...]) -> bool:
        """See all that was bound to nodes, as they are released by their last owner; False if *held* was lost."""


@define(eq=False, kw_only=True)
class MovedNodes:
    """What the holder of shards finds out about the nodes that came into them."""

    owned: OwnedShards
    settled: Callable[[Collection[str]], None]
    """Called with the nodes that this process may decide for now."""
    takes_over: TakesOverNodes = field(init=False)
    _is_under_way: bool = field(default=False, init=False)

    @property
    def is_open(self) -> bool:
        """Whether something is to be found out."""
        labelled = self.owned.labelled
        return labelled is not None and bool(labelled.unsettled(self.owned.ready))

    def look(self, held: Mapping[int, HeldShard], acknowledged: Sequence[int | None], nursery: trio.Nursery) -> None:
        """The holders of the shards have *acknowledged* these revisions of the nodes; None: there is no holder.

        Args:
            held: the shards that this process holds.
            acknowledged: by shard.
            nursery: holds what takes longer.
        """
        labelled = self.owned.labelled
        if labelled is None or self._is_under_way:
            return
        seen = [
            (name, since)
            for name, since in labelled.unsettled(self.owned.ready).items()
            if all_have_seen(since, acknowledged)
        ]
        if seen:
            shards = {labelled.of(name) for name, _since in seen}
            self._is_under_way = True
            nursery.start_soon(self._settle, seen, tuple(held[shard] for shard in shards))

    async def _settle(self, seen: Iterable[tuple[str, int]], held: tuple[HeldShard, ...]) -> None:
        try:
            labelled, names = self.owned.labelled, {name for name, _since in seen}
            if labelled is not None and await self.takes_over.take_over_nodes(names, held):
                found = labelled.settle(seen)
                if found:
                    self.settled(found)
        finally:
            self._is_under_way = False
