"""How each kind is treated: its defaults, admission and validation.

A kind without rules, which nothing in the simulator reads, is checked for its shape and stored unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import evolve, frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission import admin_access, admission, pod_security
from trio_sched.simulator.admission.limit_ranges import check_limits
from trio_sched.simulator.registry import defaults
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation import (
    pod_groups,
    policies,
    storage,
    workload_templates,
    workloads,
    workloads_of_1_35,
)
from trio_sched.simulator.validation.apiextensions.definitions import definition_problems
from trio_sched.simulator.validation.batch import jobs
from trio_sched.simulator.validation.batch.job_status import job_status_problems
from trio_sched.simulator.validation.core import (
    events,
    namespaces,
    nodes,
    quotas,
    services,
    templates,
    volume_claims,
)
from trio_sched.simulator.validation.core.pod_changes import pod_changes
from trio_sched.simulator.validation.core.pod_status import pod_status_problems
from trio_sched.simulator.validation.core.pods import pod_problems, sent_pod_problems
from trio_sched.simulator.validation.meta.field_problems import FieldProblem
from trio_sched.simulator.validation.resource import device_slices, devices
from trio_sched.simulator.validation.resource.claim_status import claim_status_problems


@frozen(kw_only=True)
class Strategy:
    """How one kind is treated; what is left out is a no-op.

    Attributes:
        defaults: fills in the defaults of a new object's fields, in place; doing it twice changes nothing.
        admit: what admission plugins and the server itself set in a new object, in place.
        admit_change: what they set in a changed object (old fields, new fields), in place.
        sent_problems: what is wrong with an object that is sent to be created, before admission.
        problems: what is wrong with an object, new or changed.
        check: refuses a new object that breaks no rule of its kind, because of others.
        change_problems: what is wrong with (old fields → new fields), besides what is wrong with the new fields.
        check_change: refuses a change (old fields, new fields) that breaks no rule of its kind, because of others.
        status_problems: what is wrong with a new status (old fields → new fields).
        status_keeps_metadata: whether a change of the status changes no labels, annotations, owners or finalizers.
    """

    defaults: Callable[[Json], None] = lambda _fields: None
    admit: Callable[[ClusterState, ResourceType, Json], None] = lambda _state, _resource, _fields: None
    admit_change: Callable[[ClusterState, Json, Json], None] = lambda _state, _old, _new: None
    sent_problems: Callable[[Json], Iterable[FieldProblem]] = lambda _fields: ()
    problems: Callable[[Json], Iterable[FieldProblem]] = lambda _fields: ()
    check: Callable[[ClusterState, ResourceType, Json], None] = lambda _state, _resource, _fields: None
    change_problems: Callable[[Json, Json], Iterable[FieldProblem]] = lambda _old, _new: ()
    check_change: Callable[[ClusterState, Json, Json], None] = lambda _state, _old, _new: None
    status_problems: Callable[[Json, Json], Iterable[FieldProblem]] = lambda _old, _new: ()
    status_keeps_metadata: bool = False


_RULES: dict[str, Strategy] = {
    "pods": Strategy(
        defaults=defaults.pod_defaults,
        admit=admission.admit_pod,
        admit_change=admission.admit_pod_change,
        sent_problems=sent_pod_problems,
        problems=pod_problems,
        check=admission.check_pod,
        change_problems=pod_changes,
        check_change=pod_security.check_pod_change,
        status_problems=pod_status_problems,
    ),
    "namespaces": Strategy(
        admit=admission.admit_namespace,
        admit_change=admission.admit_namespace_change,
        sent_problems=namespaces.sent_namespace_problems,
        change_problems=namespaces.namespace_changes,
        status_problems=namespaces.namespace_status_problems,
    ),
    "nodes": Strategy(
        defaults=defaults.node_defaults,
        admit=admission.admit_node,
        problems=nodes.node_problems,
        change_problems=nodes.node_changes,
        status_problems=nodes.node_status_changes,
    ),
    "persistentvolumes": Strategy(
        defaults=defaults.persistent_volume_defaults,
        admit=admission.admit_volume,
        problems=storage.volume_problems,
        change_problems=storage.volume_changes,
    ),
    "persistentvolumeclaims": Strategy(
        defaults=defaults.volume_defaults,
        admit=admission.admit_volume,
        problems=volume_claims.claim_problems,
        check=check_limits,
        change_problems=volume_claims.claim_changes,
        check_change=admission.check_claim_change,
        status_problems=volume_claims.claim_status_problems,
    ),
    "storageclasses.storage.k8s.io": Strategy(
        defaults=defaults.storage_class_defaults,
        problems=storage.storage_class_problems,
        change_problems=storage.storage_class_changes,
    ),
    "csidrivers.storage.k8s.io": Strategy(
        defaults=defaults.csi_driver_defaults,
        problems=storage.csi_driver_problems,
        change_problems=storage.csi_driver_changes,
    ),
    "csinodes.storage.k8s.io": Strategy(problems=storage.csi_node_problems, change_problems=storage.csi_node_changes),
    "csistoragecapacities.storage.k8s.io": Strategy(
        problems=storage.capacity_problems, change_problems=storage.capacity_changes
    ),
    "volumeattachments.storage.k8s.io": Strategy(
        problems=storage.attachment_problems,
        change_problems=storage.attachment_changes,
        status_problems=storage.attachment_status_problems,
    ),
    "services": Strategy(problems=services.service_problems),
    "resourcequotas": Strategy(
        problems=quotas.quota_problems,
        change_problems=quotas.quota_changes,
        status_problems=quotas.quota_status_problems,
    ),
    "limitranges": Strategy(
        defaults=defaults.limit_range_defaults,
        problems=quotas.limit_range_problems,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": Strategy(problems=definition_problems),
    "deployments.apps": Strategy(
        defaults=defaults.deployment_defaults,
        admit=admission.admit_workload,
        problems=workloads.deployment_problems,
        change_problems=workloads.selector_changes,
        status_problems=workloads.DEPLOYMENT_STATUS,
    ),
    "replicasets.apps": Strategy(
        defaults=defaults.replica_set_defaults,
        admit=admission.admit_workload,
        problems=workloads.replica_set_problems,
        change_problems=workloads.selector_changes,
        status_problems=workloads.REPLICA_SET_STATUS,
    ),
    "statefulsets.apps": Strategy(
        defaults=defaults.stateful_set_defaults,
        admit=admission.admit_workload,
        problems=workloads.stateful_set_problems,
        change_problems=workloads.stateful_set_changes,
        status_problems=workloads.STATEFUL_SET_STATUS,
    ),
    "daemonsets.apps": Strategy(
        defaults=defaults.daemon_set_defaults,
        admit=admission.admit_daemon_set,
        admit_change=admission.admit_daemon_set_change,
        problems=workloads.daemon_set_problems,
        change_problems=workloads.selector_changes,
        status_problems=workloads.DAEMON_SET_STATUS,
    ),
    "replicationcontrollers": Strategy(
        defaults=defaults.replication_controller_defaults,
        admit=admission.admit_workload,
        problems=workloads.replication_controller_problems,
        status_problems=workloads.REPLICA_SET_STATUS,
    ),
    "jobs.batch": Strategy(
        defaults=defaults.job_defaults,
        admit=admission.admit_job,
        sent_problems=jobs.sent_job_problems,
        problems=jobs.job_problems,
        change_problems=jobs.job_changes,
        status_problems=job_status_problems,
    ),
    "cronjobs.batch": Strategy(
        defaults=defaults.cron_job_defaults,
        problems=jobs.cron_job_problems,
    ),
    "leases.coordination.k8s.io": Strategy(problems=policies.lease_problems),
    "runtimeclasses.node.k8s.io": Strategy(
        problems=policies.runtime_class_problems, change_problems=policies.runtime_class_changes
    ),
    "events": Strategy(defaults=defaults.event_defaults, problems=events.event_problems),
    "events.events.k8s.io": Strategy(
        defaults=defaults.event_defaults,
        sent_problems=events.sent_event_problems,
        problems=events.event_problems,
        change_problems=events.event_changes,
    ),
    "podgroups.scheduling.k8s.io": Strategy(
        defaults=defaults.pod_group_defaults,
        admit=admission.admit_pod_group,
        problems=pod_groups.pod_group_problems,
        change_problems=pod_groups.pod_group_changes,
    ),
    "compositepodgroups.scheduling.k8s.io": Strategy(
        defaults=defaults.composite_pod_group_defaults,
        admit=admission.admit_composite_pod_group,
        problems=pod_groups.composite_pod_group_problems,
        change_problems=pod_groups.composite_pod_group_changes,
    ),
    "deviceclasses.resource.k8s.io": Strategy(problems=devices.class_problems),
    "devicetaintrules.resource.k8s.io": Strategy(problems=devices.taint_rule_problems),
    "resourceclaims.resource.k8s.io": Strategy(
        defaults=defaults.claim_defaults,
        problems=devices.claim_problems,
        check=admin_access.check_claim,
        change_problems=devices.claim_changes,
        status_problems=claim_status_problems,
        status_keeps_metadata=True,
    ),
    "resourceclaimtemplates.resource.k8s.io": Strategy(
        defaults=defaults.claim_template_defaults,
        problems=devices.template_problems,
        check=admin_access.check_template,
        change_problems=devices.claim_changes,
    ),
    "resourceslices.resource.k8s.io": Strategy(
        admit=admission.admit_slice,
        admit_change=admission.admit_slice_change,
        problems=device_slices.slice_problems,
        change_problems=device_slices.slice_changes,
    ),
    "volumeattributesclasses.storage.k8s.io": Strategy(
        problems=storage.attributes_class_problems, change_problems=storage.attributes_class_changes
    ),
    "podtemplates": Strategy(defaults=defaults.pod_template_defaults, problems=templates.pod_template_problems),
    "controllerrevisions.apps": Strategy(
        problems=templates.revision_problems, change_problems=templates.revision_changes
    ),
    "poddisruptionbudgets.policy": Strategy(
        admit=admission.admit_budget,
        problems=policies.budget_problems,
        status_problems=policies.budget_status_problems,
    ),
    "priorityclasses.scheduling.k8s.io": Strategy(
        defaults=defaults.priority_class_defaults,
        problems=policies.priority_class_problems,
        change_problems=policies.priority_class_changes,
    ),
}


_NO_RULES = Strategy()
_OF_1_37 = evolve(
    _RULES["podgroups.scheduling.k8s.io"],
    admit=admission.admit_pod_group_with_policy,
    change_problems=pod_groups.resizable_pod_group_changes,
)
_WORKLOAD_OF_1_37 = Strategy(
    problems=workload_templates.workload_problems, change_problems=workload_templates.workload_changes
)
_IN_VERSIONS = {
    ("scheduling.k8s.io/v1alpha1", "Workload"): Strategy(
        problems=workloads_of_1_35.workload_problems, change_problems=workloads_of_1_35.workload_changes
    ),
    ("scheduling.k8s.io/v1alpha3", "PodGroup"): _OF_1_37,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): _OF_1_37,
    ("scheduling.k8s.io/v1alpha3", "Workload"): _WORKLOAD_OF_1_37,
    ("scheduling.k8s.io/v1beta1", "Workload"): _WORKLOAD_OF_1_37,
}
"""Where the rules depend on the version that a request is about."""


def rules_of(resource: ResourceType) -> Strategy:
    """How objects of *resource* are treated."""
    schema = resource.schema
    if schema is None:
        own = _IN_VERSIONS.get((resource.api_version, resource.kind)) or _RULES.get(resource.qualified)
        return own or _RULES.get(resource.collection, _NO_RULES)
    return Strategy(
        defaults=schema.fill_defaults,
        problems=schema.problems,
        change_problems=schema.change_problems,
        status_problems=lambda old, new: [*schema.problems(new), *schema.change_problems(old, new)],
    )
