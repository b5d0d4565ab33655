"""The families ``scheduler_*`` about pod groups: their attempts, places, queue and preemption; most are of 1.37."""

from __future__ import annotations

from typing import Final

from trio_sched.daemon.metrics.families.families import Family, Type
from trio_sched.daemon.metrics.recorder import ATTEMPT_BUCKETS, EXECUTION_BUCKETS
from trio_sched.engine.hooks.histogram import exponential_buckets
from trio_sched.engine.hooks.measurements import PLACEMENT_BUCKETS

POD_GROUP_FAMILIES: Final = (
    Family(
        "scheduler_podgroup_schedule_attempts_total",
        Type.COUNTER,
        "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not be scheduled, while 'error' means an internal scheduler problem.",
        ("profile", "result"),
        gates=("GenericWorkload",),
    ),
    Family(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        Type.HISTOGRAM,
        "Pod group scheduling algorithm latency in seconds",
        buckets=ATTEMPT_BUCKETS,
        gates=("GenericWorkload",),
    ),
    Family(
        "scheduler_podgroup_scheduling_attempt_duration_seconds",
        Type.HISTOGRAM,
        "Pod group scheduling attempt latency in seconds (scheduling algorithm + binding)",
        ("profile", "result"),
        buckets=ATTEMPT_BUCKETS,
        gates=("GenericWorkload",),
    ),
    Family(
        "scheduler_queued_entities",
        Type.GAUGE,
        "Number of queued scheduling entities ('pod' or 'podgroup'; 'pod' stands for individual pods that are not members of any podgroup) by the queue type. 'active' means number of entities in activeQ; 'backoff' means number of entities in backoffQ; 'unschedulable' means number of entities in unschedulableEntities that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable entities that the scheduler never attempted to schedule because they are gated.",
        ("queue", "type"),
        since=(1, 37),
        note="With GenericWorkload groups of pods are of the type podgroup, and their pods are not counted.",
    ),
    Family(
        "scheduler_queue_incoming_entities_total",
        Type.COUNTER,
        "Number of scheduling entities added to scheduling queues by event, queue type, and entity type. Entity types are either 'pod' (for individual pods that are not members of any podgroup) or 'podgroup'.",
        ("event", "queue", "type"),
        since=(1, 37),
        note="With GenericWorkload groups of pods are of the type podgroup, and their pods are not counted.",
    ),
    Family(
        "scheduler_preemption_evaluation_duration_seconds",
        Type.HISTOGRAM,
        "Duration in seconds for identifying the target preemption victims.",
        ("preemptor", "result"),
        buckets=EXECUTION_BUCKETS,
        gates=("GenericWorkload",),
        since=(1, 37),
        note="Of a pod the dry run on the nodes; of a group from when the first pods are assumed to be gone.",
    ),
    Family(
        "scheduler_preemption_execution_duration_seconds",
        Type.HISTOGRAM,
        "Duration in seconds for preempting the target preemption victims. With async preemption enabled, preemption execution does not block the scheduling of other pods.",
        ("preemptor", "result"),
        buckets=EXECUTION_BUCKETS,
        gates=("GenericWorkload",),
        since=(1, 37),
    ),
    Family(
        "scheduler_preemption_pdb_violations_total",
        Type.COUNTER,
        "Total number of pod disruption budget violations caused by preemption.",
        ("preemptor",),
        gates=("GenericWorkload",),
        since=(1, 37),
        note="As plugins count them.",
    ),
    Family(
        "scheduler_preemption_workload_disruptions",
        Type.HISTOGRAM,
        "Number of workload preemption units being preempted. A single preemption unit can be all pods in a pod group (in case of DisruptionMode=all), or a single pod (in case of DisruptionMode=single).",
        ("preemptor",),
        buckets=exponential_buckets(1, 2, 11),
        gates=("GenericWorkload",),
        since=(1, 37),
        note="Of preemptions with victims in pod groups, as plugins count them.",
    ),
    Family(
        "scheduler_workload_preemption_attempts_total",
        Type.COUNTER,
        "Total preemption attempts initiated by workload (including pod groups) in the cluster till now.",
        ("result",),
        gates=("GenericWorkload",),
        since=(1, 37),
        note="Calls of pod_group_post_filter.",
    ),
    Family(
        "scheduler_workload_preemption_victims",
        Type.HISTOGRAM,
        "Number of pod preemption victims caused by workload preemption.",
        buckets=exponential_buckets(1, 2, 11),
        gates=("GenericWorkload",),
        since=(1, 37),
    ),
    Family(
        "scheduler_generated_placements_total",
        Type.COUNTER,
        "Number of candidate placements generated when scheduling pod groups.",
        ("profile",),
        gates=("TopologyAwareWorkloadScheduling",),
        since=(1, 37),
    ),
    Family(
        "scheduler_placement_evaluations_total",
        Type.COUNTER,
        "Number of candidate placements evaluated when scheduling pod groups, by result. 'feasible' means the pod group fit into the placement, while 'infeasible' means it did not.",
        ("profile", "result"),
        gates=("TopologyAwareWorkloadScheduling",),
        since=(1, 37),
    ),
    Family(
        "scheduler_placement_evaluation_duration_seconds",
        Type.HISTOGRAM,
        "Placement evaluation latency in seconds.",
        ("profile", "result"),
        buckets=PLACEMENT_BUCKETS,
        gates=("TopologyAwareWorkloadScheduling",),
        since=(1, 37),
        note="The buckets, and the words of the help, can be others in kube-scheduler.",
    ),
)
