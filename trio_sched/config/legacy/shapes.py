"""The shapes of the legacy component configurations: which fields each version has, and of which types."""

from collections.abc import Mapping
from typing import Final

from trio_sched.config.decode import Bool, Float32, GoType, Integer, ListOf, Raw, String, Struct
from trio_sched.config.wire_types import CLIENT_CONNECTION, EXTENDER, GROUP, LEADER_ELECTION, PLUGIN_SET, TYPE_META

Fields = dict[str, GoType]

_STRING: Final = String()
_BOOL: Final = Bool()
_INT32: Final = Integer(32)
_INT64: Final = Integer(64)

_DEBUGGING: Final[Mapping[str, Mapping[str, GoType]]] = {
    **TYPE_META,
    "DebuggingConfiguration": {"enableProfiling": _BOOL, "enableContentionProfiling": _BOOL},
}
_COMMON: Final[Fields] = {
    "clientConnection": CLIENT_CONNECTION,
    "percentageOfNodesToScore": _INT32,
    "podInitialBackoffSeconds": _INT64,
    "podMaxBackoffSeconds": _INT64,
}
_INSECURE: Final[Fields] = {"healthzBindAddress": _STRING, "metricsBindAddress": _STRING}
_LOCK_OBJECT: Final[Fields] = {"lockObjectNamespace": _STRING, "lockObjectName": _STRING}
_OLD_LEADER_ELECTION: Final = Struct(
    "v1alpha1.KubeSchedulerLeaderElectionConfiguration", {**LEADER_ELECTION.fields, **_LOCK_OBJECT}
)
_PLUGIN_CONFIG: Final = ListOf(Struct("PluginConfig", {"name": _STRING, "args": Raw()}))
_POINTS_ALPHA_1: Final = (
    *("queueSort", "preFilter", "filter", "postFilter", "score", "reserve"),
    *("permit", "preBind", "bind", "postBind", "unreserve"),
)
_POINTS_BETA_1: Final = (*_POINTS_ALPHA_1, "preScore")
_POINTS_BETA_2: Final = (*(point for point in _POINTS_BETA_1 if point != "unreserve"), "preEnqueue")
_POINTS_BETA_3: Final = (*_POINTS_BETA_2, "multiPoint")


def _plugins(version: str, points: tuple[str, ...]) -> Struct:
    return Struct(f"{version}.Plugins", dict.fromkeys(points, PLUGIN_SET))


def _profiles(version: str, points: tuple[str, ...]) -> Fields:
    fields: Fields = {"schedulerName": _STRING, "plugins": _plugins(version, points), "pluginConfig": _PLUGIN_CONFIG}
    profile = Struct(f"{version}.KubeSchedulerProfile", fields)
    return {"profiles": ListOf(profile), "extenders": ListOf(EXTENDER)}


def _configuration(version: str, *parts: Fields) -> Struct:
    fields: Fields = {}
    for part in parts:
        fields |= part
    return Struct(f"{version}.KubeSchedulerConfiguration", fields, embedded=_DEBUGGING)


_CONFIG_MAP: Final = Struct("SchedulerPolicyConfigMapSource", {"namespace": _STRING, "name": _STRING})
_FILE: Final = Struct("SchedulerPolicyFileSource", {"path": _STRING})
_POLICY: Final = Struct("SchedulerPolicySource", {"file": _FILE, "configMap": _CONFIG_MAP})
_ALGORITHM_SOURCE: Final = Struct("SchedulerAlgorithmSource", {"policy": _POLICY, "provider": _STRING})
_ALPHA: Final[Fields] = {
    **_COMMON,
    **_INSECURE,
    "algorithmSource": _ALGORITHM_SOURCE,
    "leaderElection": _OLD_LEADER_ELECTION,
    "disablePreemption": _BOOL,
    "bindTimeoutSeconds": _INT64,
}
_ALPHA_1: Final[Fields] = {
    **_ALPHA,
    "schedulerName": _STRING,
    "hardPodAffinitySymmetricWeight": _INT32,
    "failureDomains": _STRING,
    "plugins": _plugins("v1alpha1", _POINTS_ALPHA_1),
    "pluginConfig": _PLUGIN_CONFIG,
}
_FLAT: Final[Fields] = {
    **_ALPHA_1,
    **_LOCK_OBJECT,
    "port": _INT32,
    "address": _STRING,
    "algorithmProvider": _STRING,
    "policyConfigFile": _STRING,
    "policyConfigMap": _STRING,
    "policyConfigMapNamespace": _STRING,
    "useLegacyPolicyConfig": _BOOL,
    "contentType": _STRING,
    "kubeAPIQPS": Float32(),
    "kubeAPIBurst": _INT32,
}
_BETA: Final[Fields] = {**_COMMON, "parallelism": _INT32, "leaderElection": LEADER_ELECTION}

SHAPES: Final[Mapping[str, Struct]] = {
    "componentconfig/v1alpha1": _configuration("v1alpha1", _FLAT),
    f"{GROUP}/v1alpha1": _configuration("v1alpha1", _ALPHA_1),
    f"{GROUP}/v1alpha2": _configuration("v1alpha2", _ALPHA, _profiles("v1alpha2", _POINTS_BETA_1)),
    f"{GROUP}/v1beta1": _configuration("v1beta1", _BETA, _INSECURE, _profiles("v1beta1", _POINTS_BETA_1)),
    f"{GROUP}/v1beta2": _configuration("v1beta2", _BETA, _INSECURE, _profiles("v1beta2", _POINTS_BETA_2)),
    f"{GROUP}/v1beta3": _configuration("v1beta3", _BETA, _INSECURE, _profiles("v1beta3", _POINTS_BETA_3)),
}
"""The legacy versions of ``KubeSchedulerConfiguration`` by their ``apiVersion``."""
LEGACY_API_VERSIONS: Final = frozenset(SHAPES)
"""What such a document says in ``apiVersion``."""
