"""Small simulations, with a plugin under test."""

from datetime import UTC, datetime
from typing import Any

from plugin_base import PluginBase

from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates
from trio_sched.simulation.simulated_run import Plan
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.testing.cluster_settings import cluster_settings


def plan_with(
    plugin: type[PluginBase] | None,
    *more: dict[str, Any],
    begins: datetime = datetime(2026, 3, 1, tzinfo=UTC),
    gates: FeatureGates = DEFAULT_GATES,
) -> Plan:
    """A node n, a pod p that fits there, and *more*."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    settings = cluster_settings(None, gates, [] if plugin is None else [plugin], False)
    manifests = check_manifests([Manifest(one) for one in (node, pod, *more)]).manifests
    return Plan(settings=settings, manifests=manifests, seed=0, begins=begins)
