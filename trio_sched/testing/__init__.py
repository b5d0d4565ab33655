"""The toolkit for tests of plugins: describe a small cluster, and see what a plugin decides.

This package and `trio_sched.plugin_api` are the only ones with a stable API. Product code never imports it::

    from trio_sched.testing import conformance_test, node, pod, schedule, virtual_cluster

    test_conformance = conformance_test(MyPlugin)


    def test_it_filters():
        schedule(pod("p"), on=[node("a"), node("b")], plugins=[MyPlugin]).assert_scheduled(on="a")


    async def test_it_works_in_a_cluster():  # pytest runs it on a clock that jumps
        async with virtual_cluster(nodes=3, plugins=[MyPlugin]) as cluster:
            await cluster.create(pod("p"))
            await cluster.wait_scheduled("p")

`trio_sched.testing.strategies` makes random clusters; it needs Hypothesis, so it is not imported here.
"""

import importlib
from typing import TYPE_CHECKING, Any

from trio_sched.testing.builders import container as container
from trio_sched.testing.builders import node as node
from trio_sched.testing.builders import node_affinity as node_affinity
from trio_sched.testing.builders import pod as pod
from trio_sched.testing.builders import requirement as requirement
from trio_sched.testing.builders import taint as taint
from trio_sched.testing.builders import term as term
from trio_sched.testing.builders import toleration as toleration
from trio_sched.testing.conformance import NotConforming as NotConforming
from trio_sched.testing.conformance import check_conformance as check_conformance
from trio_sched.testing.conformance import conformance_test as conformance_test
from trio_sched.testing.custom_resources import custom_resource_definition as custom_resource_definition
from trio_sched.testing.device_builders import composite_pod_group as composite_pod_group
from trio_sched.testing.device_builders import device as device
from trio_sched.testing.device_builders import device_class as device_class
from trio_sched.testing.device_builders import device_request as device_request
from trio_sched.testing.device_builders import device_taint_rule as device_taint_rule
from trio_sched.testing.device_builders import pod_group as pod_group
from trio_sched.testing.device_builders import resource_claim as resource_claim
from trio_sched.testing.device_builders import resource_slice as resource_slice
from trio_sched.testing.device_builders import sub_request as sub_request
from trio_sched.testing.fake_handle import FakeHandle as FakeHandle
from trio_sched.testing.fake_handle import FakeWaitingPod as FakeWaitingPod
from trio_sched.testing.label_builders import label_selector as label_selector
from trio_sched.testing.label_builders import pod_affinity as pod_affinity
from trio_sched.testing.label_builders import pod_anti_affinity as pod_anti_affinity
from trio_sched.testing.label_builders import pod_term as pod_term
from trio_sched.testing.label_builders import spread_constraint as spread_constraint
from trio_sched.testing.manifests import ObjectChange as ObjectChange
from trio_sched.testing.object_builders import disruption_budget as disruption_budget
from trio_sched.testing.object_builders import metadata as metadata
from trio_sched.testing.object_builders import namespace as namespace
from trio_sched.testing.object_builders import owner_reference as owner_reference
from trio_sched.testing.object_builders import priority_class as priority_class
from trio_sched.testing.object_builders import replica_set as replica_set
from trio_sched.testing.object_builders import replication_controller as replication_controller
from trio_sched.testing.object_builders import service as service
from trio_sched.testing.object_builders import stateful_set as stateful_set
from trio_sched.testing.plugin_harness import Outcome as Outcome
from trio_sched.testing.plugin_harness import UnknownNode as UnknownNode
from trio_sched.testing.plugin_harness import ask_hint as ask_hint
from trio_sched.testing.plugin_harness import make_plugin as make_plugin
from trio_sched.testing.plugin_harness import make_profile as make_profile
from trio_sched.testing.plugin_harness import make_table as make_table
from trio_sched.testing.plugin_harness import schedule as schedule
from trio_sched.testing.storage_builders import csi_driver as csi_driver
from trio_sched.testing.storage_builders import csi_node as csi_node
from trio_sched.testing.storage_builders import csi_storage_capacity as csi_storage_capacity
from trio_sched.testing.storage_builders import persistent_volume as persistent_volume
from trio_sched.testing.storage_builders import persistent_volume_claim as persistent_volume_claim
from trio_sched.testing.storage_builders import storage_class as storage_class
from trio_sched.testing.storage_builders import volume_attachment as volume_attachment
from trio_sched.testing.virtual_time import run_virtual as run_virtual

if TYPE_CHECKING:
    from trio_sched.testing.cluster import NotSettled as NotSettled
    from trio_sched.testing.cluster import VirtualCluster as VirtualCluster
    from trio_sched.testing.cluster import virtual_cluster as virtual_cluster
    from trio_sched.testing.cluster_objects import Refused as Refused
    from trio_sched.testing.replays import ReplayResult as ReplayResult
    from trio_sched.testing.replays import replayed_cluster as replayed_cluster

__all__ = [
    "FakeHandle",
    "FakeWaitingPod",
    "NotConforming",
    "NotSettled",
    "ObjectChange",
    "Outcome",
    "Refused",
    "ReplayResult",
    "UnknownNode",
    "VirtualCluster",
    "ask_hint",
    "check_conformance",
    "composite_pod_group",
    "conformance_test",
    "container",
    "csi_driver",
    "csi_node",
    "csi_storage_capacity",
    "custom_resource_definition",
    "device",
    "device_class",
    "device_request",
    "device_taint_rule",
    "disruption_budget",
    "label_selector",
    "make_plugin",
    "make_profile",
    "make_table",
    "metadata",
    "namespace",
    "node",
    "node_affinity",
    "owner_reference",
    "persistent_volume",
    "persistent_volume_claim",
    "pod",
    "pod_affinity",
    "pod_anti_affinity",
    "pod_group",
    "pod_term",
    "priority_class",
    "replayed_cluster",
    "replica_set",
    "replication_controller",
    "requirement",
    "resource_claim",
    "resource_slice",
    "run_virtual",
    "schedule",
    "service",
    "spread_constraint",
    "stateful_set",
    "storage_class",
    "sub_request",
    "taint",
    "term",
    "toleration",
    "virtual_cluster",
    "volume_attachment",
]

_OF_CLUSTERS = {
    "NotSettled": "cluster",
    "Refused": "cluster_objects",
    "ReplayResult": "replays",
    "VirtualCluster": "cluster",
    "replayed_cluster": "replays",
    "virtual_cluster": "cluster",
}
"""What runs a whole cluster → the module that it is in."""


def __getattr__(name: str) -> Any:
    """What runs a whole cluster is imported when it is first used: daemon, client and simulator take long."""
    if name not in _OF_CLUSTERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"trio_sched.testing.{_OF_CLUSTERS[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
