"""Which shard each node belongs to where a label says it: a label can change, and a node must have one owner even then.

Who holds the shard that a node in use leaves gives that back, with all its nodes, and takes the move in once everything
that was decided for it has an end. Only then does it acknowledge that it has seen the change. Who holds the new shard
decides for the node once the holders of all shards have acknowledged that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from attrs import define, field

from trio_sched.engine.sharding.ownership import shard_of, shard_of_value
from trio_sched.engine.sharding.pod_scope import required_label
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeView


@define(eq=False)
class _Home:
    """The shard that a node belongs to."""

    shard: int
    since: int
    """The revision of the nodes at which it has belonged to that, or one that is later, if it was missed."""
    is_settled: bool = False
    """Whether the holders of all shards have acknowledged it."""


@define(eq=False, kw_only=True)
class LabelledNodes:
    """The shards of nodes, as this process has seen them."""

    shards: int
    label: str
    is_in_use: Callable[[str], bool] = lambda _name: True
    """Whether this process may have decided something for a node that has no end yet."""
    held: Collection[int] = ()
    """The shards that this process holds, those included that it is about to give back."""
    seen: int = field(default=0, init=False)
    """The revision up to which the changes of nodes were seen."""
    newest: int = field(default=0, init=False)
    """The last revision at which a node has changed its shard."""
    column: Callable[[NodeView], int] = field(init=False)
    """What `code` says of a node; another function after every change, for `NodeColumns.per_node`."""
    _homes: dict[str, _Home] = field(factory=dict, init=False)
    """By node."""
    _moves: dict[str, tuple[int, _Home]] = field(factory=dict, init=False)
    """Nodes of shards that this process holds, which have to be given back first → the revision that cannot be
    acknowledged before that, and where the nodes belong then."""
    _gone: set[str] = field(factory=set, init=False)
    """Nodes that do not exist any more, as long as they are in use."""

    def __attrs_post_init__(self) -> None:
        self._renew_column()

    # --- nodes ------------------------------------------------------------------------------------------------------

    def of(self, name: str) -> int:
        """The shard of a node; of one that is not known that of its name."""
        home = self._homes.get(name)
        return shard_of(name, self.shards) if home is None else home.shard

    def is_settled(self, name: str) -> bool:
        """Whether whoever holds the shard of a node may decide for it."""
        home = self._homes.get(name)
        return home is not None and home.is_settled

    def code(self, name: str) -> int:
        """The shard of a node, plus the number of shards if its holder may not decide for it."""
        home = self._homes.get(name)
        return self.of(name) + (0 if home is not None and home.is_settled else self.shards)

    def of_labels(self, node: Node) -> int:
        """The shard that a node belongs to by its labels; without the label by its name."""
        value = (node.metadata.labels or {}).get(self.label, "")
        return shard_of_value(value, self.shards) if value else shard_of(node.name, self.shards)

    # --- pods -------------------------------------------------------------------------------------------------------

    def wanted_by(self, pod: Pod) -> int | None:
        """The shard of the only nodes that *pod* may run on; None if it does not select any by the label."""
        value = required_label(pod, self.label)
        return shard_of_value(value, self.shards) if value else None

    # --- changes ----------------------------------------------------------------------------------------------------

    def node_changed(self, node: Node, revision: int) -> bool:
        """*node* was added or has changed at *revision*; returns whether it has another shard, now or later."""
        self.seen = max(self.seen, revision)
        self._gone.discard(node.name)
        shard, known, move = self.of_labels(node), self._homes.get(node.name), self._moves.get(node.name)
        if known is not None and (known if move is None else move[1]).shard == shard:
            return False
        self._begin(node.name, _Home(shard, revision), revision)
        return True

    def node_deleted(self, name: str, revision: int) -> None:
        """A node does not exist any more; what has one of its name then may belong to another shard."""
        self.seen = max(self.seen, revision)
        if name in self._homes:
            self._gone.add(name)
            self.forget_gone()

    def changes_were_missed(self, names: Iterable[str]) -> None:
        """Nodes have changed while that was not seen: each may have belonged to another shard for a while.

        So it is as if they had just come: those who saw it may have decided for them.
        """
        for name in names:
            home, move = self._homes.get(name), self._moves.get(name)
            if home is not None:
                self._begin(name, _Home((home if move is None else move[1]).shard, self.seen), self.seen)

    def _begin(self, name: str, home: _Home, revision: int) -> None:
        """A node belongs to a *home* from *revision* on; it is taken in when its old shard is given back."""
        known, move = self._homes.get(name), self._moves.get(name)
        self.newest = max(self.newest, home.since)
        has_decided = known is not None and known.is_settled and known.shard in self.held
        if move is not None or (has_decided and self.is_in_use(name)):
            self._moves[name] = revision if move is None else move[0], home
        else:
            self._homes[name] = home
            self._renew_column()

    # --- what is given back, and acknowledged -----------------------------------------------------------------------

    @property
    def left(self) -> frozenset[int]:
        """The shards that this process has to give back, as nodes leave them."""
        return frozenset(self._homes[name].shard for name in self._moves)

    @property
    def acknowledged(self) -> int:
        """The revision of the nodes that everything follows which this process decides or has decided."""
        return min((revision - 1 for revision, _home in self._moves.values()), default=self.seen)

    def finish_moves(self) -> bool:
        """Some shards may have been given back, or lost: take in the moves of their nodes; returns whether one has."""
        moved = [name for name in self._moves if self._homes[name].shard not in self.held]
        for name in moved:
            self._homes[name] = self._moves.pop(name)[1]
        if moved:
            self._renew_column()
        self.forget_gone()
        return bool(moved)

    def forget_gone(self) -> None:
        """Forget the nodes that do not exist any more and are not in use."""
        for name in [one for one in self._gone if one not in self._moves and not self.is_in_use(one)]:
            self._gone.discard(name)
            del self._homes[name]

    def unsettled(self, shards: Collection[int]) -> dict[str, int]:
        """The nodes of *shards* that nobody may decide for yet → the revision that is to be acknowledged first."""
        return {
            name: home.since
            for name, home in self._homes.items()
            if not home.is_settled and home.shard in shards and name not in self._moves
        }

    def settle(self, nodes: Iterable[tuple[str, int]]) -> list[str]:
        """All holders have acknowledged these revisions, and what they had decided was seen; returns whose they are."""
        settled: list[str] = []
        for name, since in nodes:
            home = self._homes.get(name)
            if home is not None and home.since == since and not home.is_settled and name not in self._moves:
                home.is_settled = True
                settled.append(name)
        if settled:
            self._renew_column()
        return settled

    def _renew_column(self) -> None:
        self.column = lambda node: self.code(node.name)
