"""The index of nominated pods equals looking through all of them, whatever happened before."""

from random import Random

import pytest
from msgspec.structs import replace

from trio_sched.engine.evaluation.nominated_index import NominatedIndex
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.pre_enqueue import ProfileQueueing
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import HintTable
from trio_sched.engine.queue.scheduling_queue import AlreadyQueued, SchedulingQueue
from trio_sched.plugin_api import Pod
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing import make_table, node, pod

NAMES = [f"n{i}" for i in range(4)]


class Situation:
    """A queue, nodes that come and go, and nominations."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.known: dict[str, Pod] = {}
        self.popped: list[QueuedPodInfo] = []
        self.queue = SchedulingQueue(get_unassigned_pod=self.known.get, backoff=Backoff(align_to_window=True))
        order = BoundHook("Order", "queue_sort", lambda queued: -queued.pod.priority)
        self.queue.install_queueing({"default-scheduler": ProfileQueueing([], HintTable(()))}, order)
        self.table: NodeTable = make_table([node(name) for name in NAMES[:3]])
        self.index = NominatedIndex(self.queue, self.table)
        self.now = 0.0

    def step(self) -> None:
        self.now += 1.0
        steps = (self.add, self.update, self.delete, self.pop, self.fail, self.nominate, self.change_nodes)
        self.rng.choice(steps)()

    def some(self) -> Pod | None:
        return self.rng.choice(list(self.known.values())) if self.known else None

    def add(self) -> None:
        name = f"p{self.rng.randrange(8)}"
        if f"default/{name}" not in self.known:
            nominated = self.rng.choice(["", *NAMES])
            made = pod(name, cpu=1, priority=self.rng.randrange(3), nominated_node_name=nominated)
            self.known[made.key] = made
            self.queue.add(made, now=self.now)

    def update(self) -> None:
        if old := self.some():
            status = replace(old.status, nominated_node_name=self.rng.choice(["", old.nominated_node_name, *NAMES]))
            metadata = replace(old.metadata, resource_version=str(self.now))
            new = self.known[old.key] = replace(old, status=status, metadata=metadata)
            self.queue.update(old, new, now=self.now)

    def delete(self) -> None:
        if gone := self.some():
            del self.known[gone.key]
            self.queue.delete(gone)

    def pop(self) -> None:
        if info := self.queue.pop():
            self.popped.append(info)

    def fail(self) -> None:
        if self.popped:
            info = self.popped.pop()
            known = self.known.get(info.key)
            info.unschedulable_plugins = {"X"} if self.rng.random() < 0.7 else set()
            if known is None:
                self.queue.done(info.uid)
                return
            if known is not info.pod:
                info.replace_pod(known)
            try:
                self.queue.add_unschedulable(info, now=self.now)
            except AlreadyQueued:
                return
            self.queue.nominator.add(info.pod, self.rng.choice([None, "", *NAMES]))

    def nominate(self) -> None:
        if one := self.some():
            self.queue.nominator.add(one, self.rng.choice([None, *NAMES]))

    def change_nodes(self) -> None:
        name = self.rng.choice(NAMES)
        if name in self.table.row_of:
            self.table.remove_node(name)
        else:
            self.table.add_node(node(name))

    def check(self) -> None:
        asking = self.some() if self.rng.random() < 0.5 else None
        asking = asking or pod("new", priority=self.rng.randrange(4))
        expected = {}
        for name in self.queue.nominator.nodes:
            if name in self.table.row_of:
                on_node = [
                    found.pod if isinstance(found, QueuedPodInfo) else found
                    for found in self.queue.nominated_pods(name)
                ]
                counted = [one for one in on_node if one.uid != asking.uid and one.priority >= asking.priority]
                if counted:
                    expected[name] = counted
        found = {name: [info.pod for info in infos] for name, infos in self.index.for_pod(asking).items()}
        assert found == expected


@pytest.mark.parametrize("seed", range(60))
def test_the_index_equals_looking_at_every_nomination(seed: int) -> None:
    situation = Situation(seed)
    for _ in range(80):
        situation.step()
        situation.check()


def test_what_is_returned_is_the_same_object_until_a_nomination_changes() -> None:
    situation = Situation(0)
    for name in ("a", "b"):
        made = pod(name, cpu=1, priority=5, nominated_node_name="n0" if name == "a" else "n1")
        situation.known[made.key] = made
        situation.queue.add(made, now=0.0)
    asking = pod("asking", priority=5)
    before = dict(situation.index.for_pod(asking))
    assert {name: [info.resources.requested.cpu_milli for info in infos] for name, infos in before.items()} == {
        "n0": [1000],
        "n1": [1000],
    }
    situation.queue.nominator.delete("uid-of-default/a")
    after = situation.index.for_pod(asking)
    assert list(after) == ["n1"]
    assert after["n1"] is before["n1"]
    assert situation.index.for_pod(pod("important", priority=6)) == {}
    assert situation.index.for_pod(situation.known["default/b"]) == {}
