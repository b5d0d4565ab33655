"""The feature gates that this program and its built-in plugins read.

They come and go with the versions of Kubernetes, so plugins of other packages ask `Handle.feature_enabled`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import field, fields, frozen


def _gate(name: str) -> Any:
    return field(metadata={"gate": name})


@frozen(kw_only=True)
class Features:
    """Whether each of them is on."""

    allow_parsing_user_uid_from_cert_auth: bool = _gate("AllowParsingUserUIDFromCertAuth")
    component_flagz: bool = _gate("ComponentFlagz")
    component_statusz: bool = _gate("ComponentStatusz")
    composite_pod_group: bool = _gate("CompositePodGroup")
    dra_admin_access: bool = _gate("DRAAdminAccess")
    dra_consumable_capacity: bool = _gate("DRAConsumableCapacity")
    dra_device_binding_conditions: bool = _gate("DRADeviceBindingConditions")
    dra_device_taint_rules: bool = _gate("DRADeviceTaintRules")
    dra_device_taints: bool = _gate("DRADeviceTaints")
    dra_extended_resource: bool = _gate("DRAExtendedResource")
    dra_fractional_capacity_range: bool = _gate("DRAFractionalCapacityRange")
    dra_list_type_attributes: bool = _gate("DRAListTypeAttributes")
    dra_node_allocatable_resources: bool = _gate("DRANodeAllocatableResources")
    dra_partitionable_devices: bool = _gate("DRAPartitionableDevices")
    dra_prioritized_list: bool = _gate("DRAPrioritizedList")
    dra_resource_claim_device_status: bool = _gate("DRAResourceClaimDeviceStatus")
    dra_scheduler_filter_timeout: bool = _gate("DRASchedulerFilterTimeout")
    dra_workload_resource_claims: bool = _gate("DRAWorkloadResourceClaims")
    gang_scheduling: bool = _gate("GangScheduling")
    generic_workload: bool = _gate("GenericWorkload")
    in_place_pod_level_resources_vertical_scaling: bool = _gate("InPlacePodLevelResourcesVerticalScaling")
    logging_alpha_options: bool = _gate("LoggingAlphaOptions")
    logging_beta_options: bool = _gate("LoggingBetaOptions")
    node_declared_features: bool = _gate("NodeDeclaredFeatures")
    nominated_node_name_for_expectation: bool = _gate("NominatedNodeNameForExpectation")
    pod_group_preemption_policy: bool = _gate("PodGroupPreemptionPolicy")
    pod_level_resources: bool = _gate("PodLevelResources")
    remote_request_header_uid: bool = _gate("RemoteRequestHeaderUID")
    scheduler_async_preemption: bool = _gate("SchedulerAsyncPreemption")
    scheduler_pop_from_backoff_q: bool = _gate("SchedulerPopFromBackoffQ")
    storage_capacity_scoring: bool = _gate("StorageCapacityScoring")
    taint_toleration_comparison_operators: bool = _gate("TaintTolerationComparisonOperators")
    topology_aware_workload_scheduling: bool = _gate("TopologyAwareWorkloadScheduling")
    volume_limit_scaling: bool = _gate("VolumeLimitScaling")
    workload_aware_preemption: bool = _gate("WorkloadAwarePreemption")

    @classmethod
    def of(cls, enabled: Callable[[str], bool]) -> Features:
        """Read them once; *enabled* says whether the gate of a name is on."""
        return cls(**{one.name: enabled(one.metadata["gate"]) for one in fields(cls)})
