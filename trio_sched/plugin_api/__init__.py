"""Everything a plugin needs: the hooks, what they return, and the objects and columns that they get.

This package and `trio_sched.testing` are the only ones with a stable API. A plugin imports from here and nowhere else::

    from trio_sched.plugin_api import NodeColumns, Pod, Verdicts, hookimpl, unschedulable
"""

from trio_sched.errors import nearest_name as nearest_name
from trio_sched.go.text import quote as quote
from trio_sched.objects.affinity import PreferredSchedulingTerm as PreferredSchedulingTerm
from trio_sched.objects.amounts.amount_text import amount_text as amount_text
from trio_sched.objects.amounts.amount_text import quantity_text as quantity_text
from trio_sched.objects.amounts.quantity import Quantity as Quantity
from trio_sched.objects.amounts.quantity import parse_nano as parse_nano
from trio_sched.objects.amounts.quantity_text import QuantityStyle as QuantityStyle
from trio_sched.objects.amounts.quantity_text import format_nano as format_nano
from trio_sched.objects.amounts.quantity_text import style_of as style_of
from trio_sched.objects.config_map import ConfigMap as ConfigMap
from trio_sched.objects.copies import encoded as encoded
from trio_sched.objects.copies import replace_fields as replace_fields
from trio_sched.objects.copies import to_builtins as to_builtins
from trio_sched.objects.disruption_budget import PodDisruptionBudget as PodDisruptionBudget
from trio_sched.objects.metadata import ObjectMeta as ObjectMeta
from trio_sched.objects.metadata import OwnerReference as OwnerReference
from trio_sched.objects.namespace import Namespace as Namespace
from trio_sched.objects.node import Node as Node
from trio_sched.objects.node_amounts import node_amounts as node_amounts
from trio_sched.objects.pod import Container as Container
from trio_sched.objects.pod import NodeAllocatableMappedResources as NodeAllocatableMappedResources
from trio_sched.objects.pod import NodeAllocatableOverheadResources as NodeAllocatableOverheadResources
from trio_sched.objects.pod import NodeAllocatableResourceClaimStatus as NodeAllocatableResourceClaimStatus
from trio_sched.objects.pod import Pod as Pod
from trio_sched.objects.pod import PodResourceClaim as PodResourceClaim
from trio_sched.objects.pod import PodResourceClaimStatus as PodResourceClaimStatus
from trio_sched.objects.pod import TopologySpreadConstraint as TopologySpreadConstraint
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup as CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup as PodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroupResourceClaim as PodGroupResourceClaim
from trio_sched.objects.pod_groups.workload import DaemonSet as DaemonSet
from trio_sched.objects.pod_groups.workload import Deployment as Deployment
from trio_sched.objects.pod_groups.workload import Job as Job
from trio_sched.objects.pod_groups.workload import ReplicaSet as ReplicaSet
from trio_sched.objects.pod_groups.workload import ReplicationController as ReplicationController
from trio_sched.objects.pod_groups.workload import Service as Service
from trio_sched.objects.pod_groups.workload import StatefulSet as StatefulSet
from trio_sched.objects.pod_requests import DEFAULT_CPU_MILLI as DEFAULT_CPU_MILLI
from trio_sched.objects.pod_requests import DEFAULT_MEMORY_BYTES as DEFAULT_MEMORY_BYTES
from trio_sched.objects.pod_requests import HostPort as HostPort
from trio_sched.objects.pod_requests import ResourceAmounts as ResourceAmounts
from trio_sched.objects.pod_requests import ResourceOptions as ResourceOptions
from trio_sched.objects.pod_requests import claimed_amounts as claimed_amounts
from trio_sched.objects.pod_requests import host_ports as host_ports
from trio_sched.objects.pod_requests import is_extended as is_extended
from trio_sched.objects.pod_requests import nano_limits as nano_limits
from trio_sched.objects.pod_requests import nano_requests as nano_requests
from trio_sched.objects.pod_requests import pod_resources as pod_resources
from trio_sched.objects.pod_requests import to_amounts as to_amounts
from trio_sched.objects.resource.device_class import DeviceClass as DeviceClass
from trio_sched.objects.resource.resource_claim import AllocatedDeviceStatus as AllocatedDeviceStatus
from trio_sched.objects.resource.resource_claim import AllocationResult as AllocationResult
from trio_sched.objects.resource.resource_claim import DeviceAllocationConfiguration as DeviceAllocationConfiguration
from trio_sched.objects.resource.resource_claim import DeviceAllocationResult as DeviceAllocationResult
from trio_sched.objects.resource.resource_claim import DeviceClaim as DeviceClaim
from trio_sched.objects.resource.resource_claim import DeviceConstraint as DeviceConstraint
from trio_sched.objects.resource.resource_claim import DeviceRequest as DeviceRequest
from trio_sched.objects.resource.resource_claim import DeviceRequestAllocationResult as DeviceRequestAllocationResult
from trio_sched.objects.resource.resource_claim import DeviceSubRequest as DeviceSubRequest
from trio_sched.objects.resource.resource_claim import DeviceToleration as DeviceToleration
from trio_sched.objects.resource.resource_claim import ExactDeviceRequest as ExactDeviceRequest
from trio_sched.objects.resource.resource_claim import ResourceClaim as ResourceClaim
from trio_sched.objects.resource.resource_claim import ResourceClaimConsumerReference as ResourceClaimConsumerReference
from trio_sched.objects.resource.resource_claim import ResourceClaimSpec as ResourceClaimSpec
from trio_sched.objects.resource.resource_claim import ResourceClaimTemplate as ResourceClaimTemplate
from trio_sched.objects.resource.resource_claim import ResourceClaimTemplateSpec as ResourceClaimTemplateSpec
from trio_sched.objects.resource.resource_slice import CapacityRequestPolicy as CapacityRequestPolicy
from trio_sched.objects.resource.resource_slice import Device as Device
from trio_sched.objects.resource.resource_slice import DeviceAttribute as DeviceAttribute
from trio_sched.objects.resource.resource_slice import DeviceCapacity as DeviceCapacity
from trio_sched.objects.resource.resource_slice import NodeAllocatableMapping as NodeAllocatableMapping
from trio_sched.objects.resource.resource_slice import NodeAllocatableOverhead as NodeAllocatableOverhead
from trio_sched.objects.resource.resource_slice import NodeAllocatableResource as NodeAllocatableResource
from trio_sched.objects.resource.resource_slice import NodeAllocatableResourceMapping as NodeAllocatableResourceMapping
from trio_sched.objects.resource.resource_slice import ResourceSlice as ResourceSlice
from trio_sched.objects.selector import LabelSelector as LabelSelector
from trio_sched.objects.selector import LabelSelectorRequirement as LabelSelectorRequirement
from trio_sched.objects.selector import NodeSelector as NodeSelector
from trio_sched.objects.selector import NodeSelectorRequirement as NodeSelectorRequirement
from trio_sched.objects.selector import NodeSelectorTerm as NodeSelectorTerm
from trio_sched.objects.storage.persistent_volume import ClaimReference as ClaimReference
from trio_sched.objects.storage.persistent_volume import CsiPersistentVolumeSource as CsiPersistentVolumeSource
from trio_sched.objects.storage.persistent_volume import PersistentVolume as PersistentVolume
from trio_sched.objects.storage.persistent_volume import PersistentVolumeClaim as PersistentVolumeClaim
from trio_sched.objects.storage.persistent_volume import PersistentVolumeSpec as PersistentVolumeSpec
from trio_sched.objects.storage.storage import CSIDriver as CSIDriver
from trio_sched.objects.storage.storage import CSINode as CSINode
from trio_sched.objects.storage.storage import CSIStorageCapacity as CSIStorageCapacity
from trio_sched.objects.storage.storage import StorageClass as StorageClass
from trio_sched.objects.storage.storage import TopologySelectorTerm as TopologySelectorTerm
from trio_sched.objects.storage.storage import VolumeAttachment as VolumeAttachment
from trio_sched.objects.storage.volume import Volume as Volume
from trio_sched.objects.taint import Taint as Taint
from trio_sched.objects.taint import Toleration as Toleration
from trio_sched.objects.timestamps import format_seconds as format_seconds
from trio_sched.objects.timestamps import parse_time as parse_time
from trio_sched.plugin_api.api_version import API_VERSION as API_VERSION
from trio_sched.plugin_api.argument_types import Duration as Duration
from trio_sched.plugin_api.argument_types import MilliQuantity as MilliQuantity
from trio_sched.plugin_api.argument_types import WholeQuantity as WholeQuantity
from trio_sched.plugin_api.argument_types import WrittenAs as WrittenAs
from trio_sched.plugin_api.arguments import DefaultPreemptionArgs as DefaultPreemptionArgs
from trio_sched.plugin_api.arguments import DynamicResourcesArgs as DynamicResourcesArgs
from trio_sched.plugin_api.arguments import InterPodAffinityArgs as InterPodAffinityArgs
from trio_sched.plugin_api.arguments import NodeAffinityArgs as NodeAffinityArgs
from trio_sched.plugin_api.arguments import NodeResourcesBalancedAllocationArgs as NodeResourcesBalancedAllocationArgs
from trio_sched.plugin_api.arguments import NodeResourcesFitArgs as NodeResourcesFitArgs
from trio_sched.plugin_api.arguments import PodTopologySpreadArgs as PodTopologySpreadArgs
from trio_sched.plugin_api.arguments import ScoringStrategy as ScoringStrategy
from trio_sched.plugin_api.arguments import UtilizationShapePoint as UtilizationShapePoint
from trio_sched.plugin_api.arguments import VolumeBindingArgs as VolumeBindingArgs
from trio_sched.plugin_api.clauses import Change as Change
from trio_sched.plugin_api.clauses import Clause as Clause
from trio_sched.plugin_api.clauses import Edit as Edit
from trio_sched.plugin_api.clauses import delete_pod as delete_pod
from trio_sched.plugin_api.clauses import edit_node as edit_node
from trio_sched.plugin_api.clauses import edit_pod as edit_pod
from trio_sched.plugin_api.clauses import some_names as some_names
from trio_sched.plugin_api.cluster_events import Action as Action
from trio_sched.plugin_api.cluster_events import ClusterEvent as ClusterEvent
from trio_sched.plugin_api.cluster_events import EventRegistration as EventRegistration
from trio_sched.plugin_api.cluster_events import Hint as Hint
from trio_sched.plugin_api.cluster_events import Resource as Resource
from trio_sched.plugin_api.cluster_events import on as on
from trio_sched.plugin_api.custom_resources import CustomObject as CustomObject
from trio_sched.plugin_api.custom_resources import CustomResource as CustomResource
from trio_sched.plugin_api.cycle_state import CycleState as CycleState
from trio_sched.plugin_api.extension_points import ExtensionPoints as ExtensionPoints
from trio_sched.plugin_api.extension_points import hookimpl as hookimpl
from trio_sched.plugin_api.fit_error import fit_error as fit_error
from trio_sched.plugin_api.handle import ApiRequestFailed as ApiRequestFailed
from trio_sched.plugin_api.handle import Handle as Handle
from trio_sched.plugin_api.handle import KindNotWatched as KindNotWatched
from trio_sched.plugin_api.handle import NotLeading as NotLeading
from trio_sched.plugin_api.handle import ObjectGone as ObjectGone
from trio_sched.plugin_api.handle import OutcomeUnknown as OutcomeUnknown
from trio_sched.plugin_api.handle import WaitingPod as WaitingPod
from trio_sched.plugin_api.handle import WriteConflict as WriteConflict
from trio_sched.plugin_api.http import Http as Http
from trio_sched.plugin_api.http import HttpFailed as HttpFailed
from trio_sched.plugin_api.http import HttpRequest as HttpRequest
from trio_sched.plugin_api.http import HttpResponse as HttpResponse
from trio_sched.plugin_api.log import Log as Log
from trio_sched.plugin_api.metrics import Counter as Counter
from trio_sched.plugin_api.metrics import Gauge as Gauge
from trio_sched.plugin_api.metrics import Histogram as Histogram
from trio_sched.plugin_api.metrics import Metrics as Metrics
from trio_sched.plugin_api.pending_pods import PendingPod as PendingPod
from trio_sched.plugin_api.pending_pods import QueueState as QueueState
from trio_sched.plugin_api.pod_groups import Placement as Placement
from trio_sched.plugin_api.pod_groups import PlacementAssignments as PlacementAssignments
from trio_sched.plugin_api.pod_groups import PlacementProgress as PlacementProgress
from trio_sched.plugin_api.pod_groups import PodGroupInfo as PodGroupInfo
from trio_sched.plugin_api.pod_groups import PodGroupPostFilterResult as PodGroupPostFilterResult
from trio_sched.plugin_api.pod_groups import PodGroupState as PodGroupState
from trio_sched.plugin_api.pod_groups import PodGroupTree as PodGroupTree
from trio_sched.plugin_api.pod_groups import PodGroupTrial as PodGroupTrial
from trio_sched.plugin_api.preemption import NOT_STARTED as NOT_STARTED
from trio_sched.plugin_api.preemption import Budget as Budget
from trio_sched.plugin_api.preemption import BudgetsByNamespace as BudgetsByNamespace
from trio_sched.plugin_api.preemption import DryRun as DryRun
from trio_sched.plugin_api.preemption import Victims as Victims
from trio_sched.plugin_api.preemption import budgets_of as budgets_of
from trio_sched.plugin_api.preemption import started_at as started_at
from trio_sched.plugin_api.smaller_requests import smaller_request as smaller_request
from trio_sched.plugin_api.status import SKIP as SKIP
from trio_sched.plugin_api.status import Code as Code
from trio_sched.plugin_api.status import Status as Status
from trio_sched.plugin_api.status import failure as failure
from trio_sched.plugin_api.status import not_yet as not_yet
from trio_sched.plugin_api.status import pending as pending
from trio_sched.plugin_api.status import unresolvable as unresolvable
from trio_sched.plugin_api.status import unschedulable as unschedulable
from trio_sched.plugin_api.verdicts import MAX_SCORE as MAX_SCORE
from trio_sched.plugin_api.verdicts import CodeArray as CodeArray
from trio_sched.plugin_api.verdicts import Diagnosis as Diagnosis
from trio_sched.plugin_api.verdicts import Domain as Domain
from trio_sched.plugin_api.verdicts import Input as Input
from trio_sched.plugin_api.verdicts import NodeStatuses as NodeStatuses
from trio_sched.plugin_api.verdicts import PostFilterResult as PostFilterResult
from trio_sched.plugin_api.verdicts import PreFilterResult as PreFilterResult
from trio_sched.plugin_api.verdicts import PreFlight as PreFlight
from trio_sched.plugin_api.verdicts import QueuedPod as QueuedPod
from trio_sched.plugin_api.verdicts import Verdicts as Verdicts
from trio_sched.plugin_api.verdicts import Wait as Wait
from trio_sched.plugin_api.verdicts import default_normalize_score as default_normalize_score
from trio_sched.plugin_api.verdicts import int_scores as int_scores
from trio_sched.snapshot.arrays import BoolArray as BoolArray
from trio_sched.snapshot.arrays import Int64Array as Int64Array
from trio_sched.snapshot.devices.allocated_devices import AllocatedDevices as AllocatedDevices
from trio_sched.snapshot.devices.allocated_devices import DeviceId as DeviceId
from trio_sched.snapshot.devices.allocated_devices import SharedUse as SharedUse
from trio_sched.snapshot.devices.claim_cache import EXTENDED_RESOURCE_CLAIM as EXTENDED_RESOURCE_CLAIM
from trio_sched.snapshot.devices.claim_cache import ClaimCache as ClaimCache
from trio_sched.snapshot.devices.device_models import DeviceModel as DeviceModel
from trio_sched.snapshot.devices.device_pools import Pool as Pool
from trio_sched.snapshot.devices.device_pools import PoolDevice as PoolDevice
from trio_sched.snapshot.devices.device_table import DeviceTable as DeviceTable
from trio_sched.snapshot.distinct_values import per_distinct_value as per_distinct_value
from trio_sched.snapshot.labels.affinity_terms import AffinityTerm as AffinityTerm
from trio_sched.snapshot.labels.affinity_terms import PodTerms as PodTerms
from trio_sched.snapshot.labels.affinity_terms import TermKind as TermKind
from trio_sched.snapshot.labels.affinity_terms import affinity_terms as affinity_terms
from trio_sched.snapshot.labels.label_selection import EVERYTHING as EVERYTHING
from trio_sched.snapshot.labels.label_selection import NOTHING as NOTHING
from trio_sched.snapshot.labels.label_selection import LabelMatcher as LabelMatcher
from trio_sched.snapshot.labels.label_selection import SelectorError as SelectorError
from trio_sched.snapshot.labels.label_selection import compile_selector as compile_selector
from trio_sched.snapshot.labels.label_selection import selector_of_map as selector_of_map
from trio_sched.snapshot.labels.pod_selector import NamespacedMatcher as NamespacedMatcher
from trio_sched.snapshot.labels.pod_selector import PodSelector as PodSelector
from trio_sched.snapshot.labels.pod_selector import select_pods as select_pods
from trio_sched.snapshot.node_columns import NodeColumns as NodeColumns
from trio_sched.snapshot.node_columns import NodeSet as NodeSet
from trio_sched.snapshot.node_columns import NodeView as NodeView
from trio_sched.snapshot.node_devices import BadNodeSelector as BadNodeSelector
from trio_sched.snapshot.node_devices import NodeDevices as NodeDevices
from trio_sched.snapshot.node_devices import NodeDevicesCache as NodeDevicesCache
from trio_sched.snapshot.node_devices import check_node_selector as check_node_selector
from trio_sched.snapshot.node_selection import match_label_values as match_label_values
from trio_sched.snapshot.node_selection import match_labels as match_labels
from trio_sched.snapshot.node_selection import match_node_selector as match_node_selector
from trio_sched.snapshot.node_selection import match_term as match_term
from trio_sched.snapshot.node_selection import node_selector_matches as node_selector_matches
from trio_sched.snapshot.node_selection import term_is_empty as term_is_empty
from trio_sched.snapshot.node_selection import term_problem as term_problem
from trio_sched.snapshot.node_selection import terms_problem as terms_problem
from trio_sched.snapshot.pod_counts.domain_counts import NO_DOMAIN as NO_DOMAIN
from trio_sched.snapshot.pod_counts.domain_counts import DomainCounts as DomainCounts
from trio_sched.snapshot.pod_counts.term_index import MatchingTerms as MatchingTerms
from trio_sched.snapshot.pod_counts.term_index import TermCounts as TermCounts
from trio_sched.snapshot.sized_cache import SizedCache as SizedCache
from trio_sched.snapshot.tolerations import Tolerations as Tolerations

__all__ = [
    "API_VERSION",
    "DEFAULT_CPU_MILLI",
    "DEFAULT_MEMORY_BYTES",
    "EVERYTHING",
    "EXTENDED_RESOURCE_CLAIM",
    "MAX_SCORE",
    "NOTHING",
    "NOT_STARTED",
    "NO_DOMAIN",
    "SKIP",
    "Action",
    "AffinityTerm",
    "AllocatedDeviceStatus",
    "AllocatedDevices",
    "AllocationResult",
    "ApiRequestFailed",
    "BadNodeSelector",
    "BoolArray",
    "Budget",
    "BudgetsByNamespace",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "CapacityRequestPolicy",
    "Change",
    "ClaimCache",
    "ClaimReference",
    "Clause",
    "ClusterEvent",
    "Code",
    "CodeArray",
    "CompositePodGroup",
    "ConfigMap",
    "Container",
    "Counter",
    "CsiPersistentVolumeSource",
    "CustomObject",
    "CustomResource",
    "CycleState",
    "DaemonSet",
    "DefaultPreemptionArgs",
    "Deployment",
    "Device",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClaim",
    "DeviceClass",
    "DeviceConstraint",
    "DeviceId",
    "DeviceModel",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSubRequest",
    "DeviceTable",
    "DeviceToleration",
    "Diagnosis",
    "Domain",
    "DomainCounts",
    "DryRun",
    "Duration",
    "DynamicResourcesArgs",
    "Edit",
    "EventRegistration",
    "ExactDeviceRequest",
    "ExtensionPoints",
    "Gauge",
    "Handle",
    "Hint",
    "Histogram",
    "HostPort",
    "Http",
    "HttpFailed",
    "HttpRequest",
    "HttpResponse",
    "Input",
    "Int64Array",
    "InterPodAffinityArgs",
    "Job",
    "KindNotWatched",
    "LabelMatcher",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Log",
    "MatchingTerms",
    "Metrics",
    "MilliQuantity",
    "Namespace",
    "NamespacedMatcher",
    "Node",
    "NodeAffinityArgs",
    "NodeAllocatableMappedResources",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableOverheadResources",
    "NodeAllocatableResource",
    "NodeAllocatableResourceClaimStatus",
    "NodeAllocatableResourceMapping",
    "NodeColumns",
    "NodeDevices",
    "NodeDevicesCache",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSet",
    "NodeStatuses",
    "NodeView",
    "NotLeading",
    "ObjectGone",
    "ObjectMeta",
    "OutcomeUnknown",
    "OwnerReference",
    "PendingPod",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeSpec",
    "Placement",
    "PlacementAssignments",
    "PlacementProgress",
    "Pod",
    "PodDisruptionBudget",
    "PodGroup",
    "PodGroupInfo",
    "PodGroupPostFilterResult",
    "PodGroupResourceClaim",
    "PodGroupState",
    "PodGroupTree",
    "PodGroupTrial",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSelector",
    "PodTerms",
    "PodTopologySpreadArgs",
    "Pool",
    "PoolDevice",
    "PostFilterResult",
    "PreFilterResult",
    "PreFlight",
    "PreferredSchedulingTerm",
    "Quantity",
    "QuantityStyle",
    "QueueState",
    "QueuedPod",
    "ReplicaSet",
    "ReplicationController",
    "Resource",
    "ResourceAmounts",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourceOptions",
    "ResourceSlice",
    "ScoringStrategy",
    "SelectorError",
    "Service",
    "SharedUse",
    "SizedCache",
    "StatefulSet",
    "Status",
    "StorageClass",
    "Taint",
    "TermCounts",
    "TermKind",
    "Toleration",
    "Tolerations",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "UtilizationShapePoint",
    "Verdicts",
    "Victims",
    "Volume",
    "VolumeAttachment",
    "VolumeBindingArgs",
    "Wait",
    "WaitingPod",
    "WholeQuantity",
    "WriteConflict",
    "WrittenAs",
    "affinity_terms",
    "amount_text",
    "budgets_of",
    "check_node_selector",
    "claimed_amounts",
    "compile_selector",
    "default_normalize_score",
    "delete_pod",
    "edit_node",
    "edit_pod",
    "encoded",
    "failure",
    "fit_error",
    "format_nano",
    "format_seconds",
    "hookimpl",
    "host_ports",
    "int_scores",
    "is_extended",
    "match_label_values",
    "match_labels",
    "match_node_selector",
    "match_term",
    "nano_limits",
    "nano_requests",
    "nearest_name",
    "node_amounts",
    "node_selector_matches",
    "not_yet",
    "on",
    "parse_nano",
    "parse_time",
    "pending",
    "per_distinct_value",
    "pod_resources",
    "quantity_text",
    "quote",
    "replace_fields",
    "select_pods",
    "selector_of_map",
    "smaller_request",
    "some_names",
    "started_at",
    "style_of",
    "term_is_empty",
    "term_problem",
    "terms_problem",
    "to_amounts",
    "to_builtins",
    "unresolvable",
    "unschedulable",
]
