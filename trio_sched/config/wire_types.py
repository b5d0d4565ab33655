"""The shape of ``kubescheduler.config.k8s.io/v1``: which fields there are, and of which types."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from attrs import evolve

from trio_sched.config.decode import (
    Bool,
    Bytes,
    Duration,
    Float32,
    GoType,
    Integer,
    ListOf,
    Raw,
    String,
    Struct,
)

if TYPE_CHECKING:
    from trio_sched.config.feature_gates import FeatureGates

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
GROUP: Final = "kubescheduler.config.k8s.io"
CONFIGURATION_KIND: Final = "KubeSchedulerConfiguration"

_STRING: Final = String()
_BOOL: Final = Bool()
_INT32: Final = Integer(32)
_INT64: Final = Integer(64)
TYPE_META: Final[dict[str, dict[str, GoType]]] = {"TypeMeta": {"kind": _STRING, "apiVersion": _STRING}}

POINTS: Final = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "queue_sort",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
    "multiPoint": "multi_point",
    "placementGenerate": "placement_generate",
    "placementScore": "placement_score",
}
"""The keys of ``plugins`` in the file, and the names of the extension points here."""
ALL_POINTS: Final = POINTS | {"podGroupPostFilter": "pod_group_post_filter"}
"""The same with those that newer versions have."""

_PLUGIN: Final = Struct("v1.Plugin", {"name": _STRING, "weight": _INT32})
PLUGIN_SET: Final = Struct("v1.PluginSet", {"enabled": ListOf(_PLUGIN), "disabled": ListOf(_PLUGIN)})


def _profile(points: Iterable[str]) -> Struct:
    return Struct(
        "v1.KubeSchedulerProfile",
        {
            "schedulerName": _STRING,
            "percentageOfNodesToScore": _INT32,
            "plugins": Struct("v1.Plugins", dict.fromkeys(points, PLUGIN_SET)),
            "pluginConfig": ListOf(Struct("v1.PluginConfig", {"name": _STRING, "args": Raw()})),
        },
    )


EXTENDER: Final = Struct(
    "v1.Extender",
    {
        "urlPrefix": _STRING,
        "filterVerb": _STRING,
        "preemptVerb": _STRING,
        "prioritizeVerb": _STRING,
        "weight": _INT64,
        "bindVerb": _STRING,
        "enableHTTPS": _BOOL,
        "tlsConfig": Struct(
            "v1.ExtenderTLSConfig",
            {
                "insecure": _BOOL,
                "serverName": _STRING,
                "certFile": _STRING,
                "keyFile": _STRING,
                "caFile": _STRING,
                "certData": Bytes(),
                "keyData": Bytes(),
                "caData": Bytes(),
            },
        ),
        "httpTimeout": Duration(),
        "nodeCacheCapable": _BOOL,
        "managedResources": ListOf(
            Struct("v1.ExtenderManagedResource", {"name": _STRING, "ignoredByScheduler": _BOOL})
        ),
        "ignorable": _BOOL,
    },
)
LEADER_ELECTION: Final = Struct(
    "v1alpha1.LeaderElectionConfiguration",
    {
        "leaderElect": _BOOL,
        "leaseDuration": Duration(),
        "renewDeadline": Duration(),
        "retryPeriod": Duration(),
        "resourceLock": _STRING,
        "resourceName": _STRING,
        "resourceNamespace": _STRING,
    },
)
CLIENT_CONNECTION: Final = Struct(
    "v1alpha1.ClientConnectionConfiguration",
    {
        "kubeconfig": _STRING,
        "acceptContentTypes": _STRING,
        "contentType": _STRING,
        "qps": Float32(),
        "burst": _INT32,
    },
)
SHARDING: Final = Struct("v1.ShardingConfiguration", {"shards": _INT32, "nodeLabel": _STRING})
CONFIGURATION: Final = Struct(
    "v1.KubeSchedulerConfiguration",
    {
        "parallelism": _INT32,
        "leaderElection": LEADER_ELECTION,
        "clientConnection": CLIENT_CONNECTION,
        "percentageOfNodesToScore": _INT32,
        "podInitialBackoffSeconds": _INT64,
        "podMaxBackoffSeconds": _INT64,
        "profiles": ListOf(_profile(POINTS)),
        "extenders": ListOf(EXTENDER),
        "delayCacheUntilActive": _BOOL,
        # Of trio-sched; kube-scheduler does not know them.
        "explainInCondition": _BOOL,
        "sharding": SHARDING,
    },
    embedded={
        **TYPE_META,
        "DebuggingConfiguration": {"enableProfiling": _BOOL, "enableContentionProfiling": _BOOL},
    },
)
_NEWER_CONFIGURATION: Final = evolve(
    CONFIGURATION, fields={**CONFIGURATION.fields, "profiles": ListOf(_profile(ALL_POINTS))}
)


def points_at(gates: "FeatureGates") -> Mapping[str, str]:
    """`POINTS` of the version that is emulated."""
    return ALL_POINTS if gates.behaviour.groups_preempt_as_one else POINTS


def configuration_at(gates: "FeatureGates") -> Struct:
    """`CONFIGURATION` of the version that is emulated."""
    return _NEWER_CONFIGURATION if gates.behaviour.groups_preempt_as_one else CONFIGURATION
