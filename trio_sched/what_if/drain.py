"""Drains: nodes are cordoned, and their pods evicted as far as disruption budgets let them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field, frozen

from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.what_if.cluster_changes import ClusterChanges, is_unmanaged, pods_of_node, stays_on_node


@frozen(kw_only=True)
class Blocked:
    """A pod that cannot be evicted."""

    pod: str
    node: str
    why: str


@frozen(kw_only=True)
class Wave:
    """What is evicted at once; the next one waits until the pods of this one run elsewhere."""

    pods: tuple[str, ...]
    emptied: tuple[str, ...]
    """The nodes that have nothing left to evict after it."""


@define(eq=False)
class Drained:
    """What draining has done."""

    nodes: Sequence[str]
    waves: list[Wave] = field(factory=list)
    blocked: list[Blocked] = field(factory=list)
    unmanaged: list[str] = field(factory=list)
    """Pods that nothing makes again, which ``kubectl drain`` refuses without ``--force``."""
    staying: int = 0
    """Pods of DaemonSets and static ones, which are left where they are."""
    settled: bool = True

    @property
    def command(self) -> str:
        """The ``kubectl drain`` that does the same, node by node in the order in which they were emptied."""
        emptied = [node for wave in self.waves for node in wave.emptied]
        in_order = [*emptied, *(node for node in self.nodes if node not in emptied)]
        force = " --force" if self.unmanaged else ""
        return f"kubectl drain {' '.join(in_order)} --ignore-daemonsets --delete-emptydir-data{force}"


async def drain(changes: ClusterChanges, nodes: Sequence[str]) -> Drained:
    """Cordon all of *nodes*, then evict their pods; what a budget refuses is tried again while others make progress."""
    done = Drained(nodes)
    for node in nodes:
        await changes.set_cordoned(node, cordoned=True)
    left = {node: _to_evict(changes, node, done) for node in nodes}
    empty = tuple(node for node, pods in left.items() if not pods)
    if empty:
        done.waves.append(Wave(pods=(), emptied=empty))
    while any(left.values()):
        evicted, done.blocked = await _evict(changes, left)
        if not evicted:
            break
        done.settled = await changes.settle()
        before = [node for node, pods in left.items() if pods]
        left = {node: [pod for pod in pods if pod.key not in evicted] for node, pods in left.items()}
        done.waves.append(Wave(pods=tuple(evicted), emptied=tuple(node for node in before if not left[node])))
        if not done.settled:
            break
    return done


def _to_evict(changes: ClusterChanges, node: str, done: Drained) -> list[StoredObject]:
    found = []
    for pod in pods_of_node(changes.store, node):
        if stays_on_node(pod):
            done.staying += 1
            continue
        if is_unmanaged(pod):
            done.unmanaged.append(pod.key)
        found.append(pod)
    return found


async def _evict(changes: ClusterChanges, left: dict[str, list[StoredObject]]) -> tuple[dict[str, None], list[Blocked]]:
    """Try to evict every pod once; returns those that were, and those that were refused."""
    evicted: dict[str, None] = {}
    blocked = []
    for node, pods in left.items():
        for pod in pods:
            why = await changes.evict(pod)
            if why:
                blocked.append(Blocked(pod=pod.key, node=node, why=why))
            else:
                evicted[pod.key] = None
    return evicted, blocked
