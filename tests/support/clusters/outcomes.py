from trio_sched.simulation.history import Timeline
from trio_sched.simulation.missing_pods import MissingPods
from trio_sched.simulation.node_usage import NodeGroup, NodeReport, Usage
from trio_sched.simulation.outcome import Claims, Devices, Eviction, Group, Outcome, Placement, Waiting
from trio_sched.simulation.provisioners import Assumption


def usage(cpu: int, *, of: int = 4000, pods: int = 1) -> Usage:
    return Usage(
        pods=pods,
        pods_allocatable=10,
        requested={"cpu": cpu, "memory": 0},
        allocatable={"cpu": of, "memory": 8 << 30},
    )


def outcome(name: str = "n", *, nodes: int = 1, cpu: int = 1000, timeline: Timeline | None = None) -> Outcome:
    """One row in every section."""
    reports = tuple(NodeReport(name=f"{name}{i}", pool=name, zone=name, usage=usage(cpu)) for i in range(nodes))
    group = NodeGroup(name=name, nodes=nodes, usage=usage(cpu), fragmentation={"cpu": 0.25, "memory": None})
    placed = Placement(namespace=name, pod=name, workload=name, node=name, phase=name, seconds_to_schedule=1.0)
    return Outcome(
        placements=(placed,),
        waiting=(Waiting(reason=name, message=name, pods=(name,) * 30),),
        missing=(MissingPods(namespace=name, kind=name, workload=name, pods=2, message=name),),
        evictions=(Eviction(pod=name, by=name, node=name, at_seconds=3.0),),
        claims=(Claims(namespace=name, storage_class=name, bound=5, pending=6),),
        assumptions=(Assumption(message=name, claims=(name,)),),
        devices=(Devices(driver=name, pool=name, count=9, allocated=7, tainted=8),),
        groups=(Group(namespace=name, name=name, min_count=4, placed=2, pending=3, message=name),),
        nodes=reports,
        pools=(group,),
        zones=(group,),
        time_to_schedule=None,
        timeline=timeline
        or Timeline(arrivals=(0.0, 5.0), placements=(1.0,), preemptions=(3.0,), requested=((0.0, 0, 0),)),
        simulated_seconds=10.0,
        settled=True,
    )
