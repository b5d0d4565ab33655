"""A scheduler of the engine with nodes and pods, without anything around it."""

from collections.abc import Iterable
from random import Random

from trio_sched.engine.cache import Cache
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing.plugin_harness import make_profile

PLUGINS = [
    "PrioritySort",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
]


def scheduler_with(nodes: Iterable[Node], pods: Iterable[Pod]) -> Scheduler:
    """A scheduler with the plugins that need no other objects."""
    profile = make_profile(PLUGINS)
    cache = Cache()
    made = Scheduler(cache=cache, queue=SchedulingQueue(get_unassigned_pod=cache.unassigned.get), rng=Random(0))
    made.install_profiles({profile.name: profile})
    for one in nodes:
        cache.add_node(one)
    for other in pods:
        if other.node_name:
            cache.add(other)
        else:
            cache.put_unassigned(other)
    return made
