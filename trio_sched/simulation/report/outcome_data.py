"""An `Outcome` as plain data for JSON and YAML; ``docs/reference/outcome.schema.json`` describes it."""

from typing import Any, Final

from attrs import asdict

from trio_sched.simulation.explanations import explanation_as_data
from trio_sched.simulation.node_usage import NodeGroup, Usage
from trio_sched.simulation.outcome import Outcome, Placement

Json = dict[str, Any]

VERSION: Final = 1
"""Of the data: grows when something is taken away or gets another meaning, not when something is added."""


def outcome_as_data(outcome: Outcome) -> Json:
    """*outcome* for JSON and YAML; CPU in milli-CPU, memory in bytes, times in seconds."""
    time = outcome.time_to_schedule
    return {
        "version": VERSION,
        "summary": {
            "nodes": len(outcome.nodes),
            "placed": len(outcome.placements),
            "pending": outcome.waiting_pods,
            "notCreated": outcome.missing_pods,
            "settled": outcome.settled,
            "simulatedSeconds": round(outcome.simulated_seconds, 3),
        },
        "timeToSchedule": None
        if time is None
        else {"pods": time.pods, "p50": round(time.p50, 3), "p99": round(time.p99, 3), "max": round(time.longest, 3)},
        "placements": [_placement(placement) for placement in outcome.placements],
        "pending": [
            {"reason": group.reason, "message": group.message, "pods": list(group.pods)} for group in outcome.waiting
        ],
        "notCreated": [asdict(one) for one in outcome.missing],
        "claims": [
            {
                "namespace": one.namespace,
                "storageClass": one.storage_class,
                "bound": one.bound,
                "pending": one.pending,
            }
            for one in outcome.claims
        ],
        "devices": [asdict(one) for one in outcome.devices],
        "podGroups": [
            {
                "namespace": one.namespace,
                "name": one.name,
                "minCount": one.min_count,
                "placed": one.placed,
                "pending": one.pending,
                "message": one.message,
            }
            for one in outcome.groups
        ],
        "preempted": [
            {"pod": one.pod, "by": one.by, "node": one.node, "atSeconds": round(one.at_seconds, 3)}
            for one in outcome.evictions
        ],
        "pools": [_group(group) for group in outcome.pools],
        "zones": [_group(group) for group in outcome.zones],
        "nodes": [
            {"name": node.name, "pool": node.pool, "zone": node.zone, **_usage(node.usage)} for node in outcome.nodes
        ],
        "explanations": [explanation_as_data(one) for one in outcome.explanations],
    }


def _placement(placement: Placement) -> Json:
    seconds = placement.seconds_to_schedule
    return {
        "namespace": placement.namespace,
        "pod": placement.pod,
        "workload": placement.workload,
        "node": placement.node,
        "phase": placement.phase,
        "secondsToSchedule": None if seconds is None else round(seconds, 3),
    }


def _group(group: NodeGroup) -> Json:
    fragmentation = {name: None if share is None else round(share, 4) for name, share in group.fragmentation.items()}
    return {"name": group.name, "nodes": group.nodes, **_usage(group.usage), "fragmentation": fragmentation}


def _usage(usage: Usage) -> Json:
    return {
        "pods": usage.pods,
        "podsAllocatable": usage.pods_allocatable,
        "requested": dict(usage.requested),
        "allocatable": dict(usage.allocatable),
    }
