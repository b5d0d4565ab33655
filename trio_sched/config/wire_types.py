"""The shape of ``kubescheduler.config.k8s.io/v1``: which fields there are, and of which types."""

from typing import Final

from trio_sched.config.decode import (
    Bool,
    Bytes,
    Duration,
    Float32,
    GoType,
    Integer,
    ListOf,
    MapOf,
    Raw,
    String,
    Struct,
)

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
GROUP: Final = "kubescheduler.config.k8s.io"
CONFIGURATION_KIND: Final = "KubeSchedulerConfiguration"

_STRING: Final = String()
_BOOL: Final = Bool()
_INT32: Final = Integer(32)
_INT64: Final = Integer(64)
_STRINGS: Final = ListOf(_STRING)
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
"""The keys of ``plugins`` in the file, and what they are called here."""

_PLUGIN: Final = Struct("v1.Plugin", {"name": _STRING, "weight": _INT32})
PLUGIN_SET: Final = Struct("v1.PluginSet", {"enabled": ListOf(_PLUGIN), "disabled": ListOf(_PLUGIN)})
_PROFILE: Final = Struct(
    "v1.KubeSchedulerProfile",
    {
        "schedulerName": _STRING,
        "percentageOfNodesToScore": _INT32,
        "plugins": Struct("v1.Plugins", dict.fromkeys(POINTS, PLUGIN_SET)),
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
CONFIGURATION: Final = Struct(
    "v1.KubeSchedulerConfiguration",
    {
        "parallelism": _INT32,
        "leaderElection": LEADER_ELECTION,
        "clientConnection": CLIENT_CONNECTION,
        "percentageOfNodesToScore": _INT32,
        "podInitialBackoffSeconds": _INT64,
        "podMaxBackoffSeconds": _INT64,
        "profiles": ListOf(_PROFILE),
        "extenders": ListOf(EXTENDER),
        "delayCacheUntilActive": _BOOL,
    },
    embedded={
        **TYPE_META,
        "DebuggingConfiguration": {"enableProfiling": _BOOL, "enableContentionProfiling": _BOOL},
    },
)

RESOURCES: Final = ListOf(Struct("v1.ResourceSpec", {"name": _STRING, "weight": _INT64}))
SHAPE: Final = ListOf(Struct("v1.UtilizationShapePoint", {"utilization": _INT32, "score": _INT32}))
_NODE_REQUIREMENTS: Final = ListOf(
    Struct(
        "v1.NodeSelectorRequirement",
        {"key": _STRING, "operator": String("v1.NodeSelectorOperator"), "values": _STRINGS},
    )
)
_NODE_TERM: Final = Struct(
    "v1.NodeSelectorTerm", {"matchExpressions": _NODE_REQUIREMENTS, "matchFields": _NODE_REQUIREMENTS}
)
_NODE_AFFINITY: Final = Struct(
    "v1.NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Struct(
            "v1.NodeSelector", {"nodeSelectorTerms": ListOf(_NODE_TERM)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Struct("v1.PreferredSchedulingTerm", {"weight": _INT32, "preference": _NODE_TERM})
        ),
    },
)
_LABEL_SELECTOR: Final = Struct(
    "v1.LabelSelector",
    {
        "matchLabels": MapOf(_STRING),
        "matchExpressions": ListOf(
            Struct(
                "v1.LabelSelectorRequirement",
                {"key": _STRING, "operator": String("v1.LabelSelectorOperator"), "values": _STRINGS},
            )
        ),
    },
)
_SPREAD_CONSTRAINT: Final = Struct(
    "v1.TopologySpreadConstraint",
    {
        "maxSkew": _INT32,
        "topologyKey": _STRING,
        "whenUnsatisfiable": String("v1.UnsatisfiableConstraintAction"),
        "labelSelector": _LABEL_SELECTOR,
        "minDomains": _INT32,
        "nodeAffinityPolicy": String("v1.NodeInclusionPolicy"),
        "nodeTaintsPolicy": String("v1.NodeInclusionPolicy"),
        "matchLabelKeys": _STRINGS,
    },
)
_SCORING_STRATEGY: Final = Struct(
    "v1.ScoringStrategy",
    {
        "type": String("v1.ScoringStrategyType"),
        "resources": RESOURCES,
        "requestedToCapacityRatio": Struct("v1.RequestedToCapacityRatioParam", {"shape": SHAPE}),
    },
)


def _arguments(plugin: str, fields: dict[str, GoType]) -> Struct:
    return Struct(f"v1.{plugin}Args", fields, embedded=TYPE_META)


_ARGUMENT_FIELDS: Final[dict[str, dict[str, GoType]]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": _INT32, "minCandidateNodesAbsolute": _INT32},
    "DynamicResources": {"filterTimeout": Duration(optional=True), "bindingTimeout": Duration(optional=True)},
    "InterPodAffinity": {"hardPodAffinityWeight": _INT32, "ignorePreferredTermsOfExistingPods": _BOOL},
    "NodeAffinity": {"addedAffinity": _NODE_AFFINITY},
    "NodeResourcesBalancedAllocation": {"resources": RESOURCES},
    "NodeResourcesFit": {
        "ignoredResources": _STRINGS,
        "ignoredResourceGroups": _STRINGS,
        "scoringStrategy": _SCORING_STRATEGY,
    },
    "PodTopologySpread": {
        "defaultConstraints": ListOf(_SPREAD_CONSTRAINT),
        "defaultingType": String("v1.PodTopologySpreadConstraintsDefaulting"),
    },
    "VolumeBinding": {"bindTimeoutSeconds": _INT64, "shape": SHAPE},
}
ARGUMENTS: Final = {plugin: _arguments(plugin, fields) for plugin, fields in _ARGUMENT_FIELDS.items()}
"""The arguments of every in-tree plugin that has some, by the plugin's name; the kind is that name and ``Args``."""

REGISTERED: Final = {CONFIGURATION_KIND: CONFIGURATION} | {f"{name}Args": type_ for name, type_ in ARGUMENTS.items()}
"""Every kind that can be decoded."""
