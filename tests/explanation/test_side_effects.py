"""What is said of a change besides what it does for the pod."""

from random import Random

from trio_sched.engine.cache import Cache
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.explanation import explain
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, owner_reference, pod
from trio_sched.testing.plugin_harness import make_profile


def notes_of(nodes: list[Node], pods: list[Pod], asked: Pod) -> dict[str, tuple[str, ...]]:
    """The title of each change that helps → what is said of it besides."""
    profile = make_profile(["PrioritySort", "NodeUnschedulable", "NodeResourcesFit"])
    cache = Cache()
    scheduler = Scheduler(cache=cache, queue=SchedulingQueue(get_unassigned_pod=cache.unassigned.get), rng=Random(0))
    scheduler.install_profiles({profile.name: profile})
    for one in nodes:
        cache.add_node(one)
    for other in pods:
        if other.node_name:
            cache.add(other)
        else:
            cache.put_unassigned(other)
    found = explain(scheduler, asked)
    # Nothing that was tried is left.
    assert sorted(one.key for one in cache.unassigned.pods()) == sorted(one.key for one in pods if not one.node_name)
    return {remedy.change.title: remedy.notes for remedy in found.remedies.found}


def test_a_pod_that_could_take_the_place_first_is_named() -> None:
    nodes = [node("a", cpu="4", unschedulable=True)]
    rival, asked = pod("rival", cpu="3"), pod("asked", cpu="3")
    assert notes_of(nodes, [rival, asked], asked)["uncordon a"] == (
        "default/rival, which is pending too, could take this place first",
    )
    small, low = pod("small", cpu="1"), pod("low", cpu="3", priority=-1)
    assert notes_of(nodes, [small, low, asked], asked)["uncordon a"] == ()


def test_it_is_said_where_the_replacement_of_an_evicted_pod_would_go() -> None:
    running = pod("running", cpu="3", node_name="a", owner=owner_reference("ReplicaSet", "web"))
    asked = pod("asked", cpu="4")
    moved = notes_of([node("a", cpu="4"), node("b", cpu="3")], [running, asked], asked)
    assert moved["delete default/running"][-1] == (
        "ReplicaSet web makes a new pod in place of default/running, which would go to b"
    )
    stuck = notes_of([node("a", cpu="4")], [running, asked], asked)
    assert stuck["delete default/running"][-1].endswith("which would be pending")
    bare = pod("bare", cpu="3", node_name="a")
    assert notes_of([node("a", cpu="4")], [bare, asked], asked)["delete default/bare"][-1] == (
        "nothing makes default/bare anew"
    )


def test_no_pod_of_the_same_workload_is_deleted() -> None:
    web, other = owner_reference("ReplicaSet", "web"), owner_reference("ReplicaSet", "other")
    running = pod("web-1", cpu="3", node_name="a", owner=web)
    asked = pod("web-2", cpu="3", owner=web)
    nodes = [node("a", cpu="3"), node("b", cpu="3")]
    mixed = notes_of(nodes, [running, pod("other-1", cpu="3", node_name="b", owner=other), asked], asked)
    assert [title for title in mixed if "delete" in title] == ["delete default/other-1"]
    alike = notes_of(nodes, [running, pod("web-3", cpu="3", node_name="b", owner=web), asked], asked)
    assert [title for title in alike if "delete" in title] == []
