from collections.abc import Callable

import pytest

from trio_sched.config.errors import ConfigError
from trio_sched.config.expansion import Expanded
from trio_sched.config.legacy import Conversion, PolicyConfigMap, PolicyFile, read_legacy_configuration
from trio_sched.config.legacy.profile_draft import NEWER_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.schema import RawArguments
from trio_sched.plugin_api.arguments import InterPodAffinityArgs, PodTopologySpreadArgs, VolumeBindingArgs

Convert = Callable[..., Conversion]
Expand = Callable[..., list[Expanded]]

OLD_WEIGHTS = {
    "TaintToleration": 1,
    "NodeAffinity": 1,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
TODAYS_WEIGHTS = OLD_WEIGHTS | {"TaintToleration": 3, "NodeAffinity": 2, "InterPodAffinity": 2}
COSCHEDULING = """
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
plugins:
  queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
  permit: {enabled: [{name: Coscheduling}]}
  unreserve: {enabled: [{name: Coscheduling}]}
pluginConfig:
- name: Coscheduling
  args: {permitWaitingTimeSeconds: 10}
"""
PACKED_BETA_1 = """
leaderElection: {leaderElect: false}
profiles:
- schedulerName: bin-packing
  plugins:
    score:
      disabled: [{name: NodeResourcesLeastAllocated}, {name: NodeResourcesBalancedAllocation}]
      enabled: [{name: RequestedToCapacityRatio, weight: 10}]
  pluginConfig:
  - name: RequestedToCapacityRatio
    args:
      shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
      resources: [{name: cpu, weight: 1}, {name: nvidia.com/gpu, weight: 5}]
"""


def weights(expanded: Expanded) -> dict[str, int]:
    without = {*NEWER_PLUGINS, "VolumeBinding"}
    return {ref.name: ref.weight for ref in expanded["score"] if ref.name not in without}


def names(expanded: Expanded, point: str) -> list[str]:
    return [ref.name for ref in expanded[point] if ref.name not in NEWER_PLUGINS]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("componentconfig/v1alpha1", OLD_WEIGHTS),
        ("v1alpha1", OLD_WEIGHTS),
        ("v1alpha2", OLD_WEIGHTS),
        ("v1beta1", OLD_WEIGHTS),
        ("v1beta2", OLD_WEIGHTS),
        ("v1beta3", TODAYS_WEIGHTS),
    ],
)
def test_an_empty_document_keeps_the_weights_of_its_version(
    convert: Convert, expand: Expand, version: str, expected: dict[str, int]
) -> None:
    (expanded,) = expand(convert(version, ""))
    assert weights(expanded) == expected
    assert "NodeVolumeLimits" in names(expanded, "filter")
    assert names(expanded, "post_filter") == ["DefaultPreemption"]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: foo.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: v1\nkind: Policy\n",
        "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: NodeResourcesFitArgs\n",
        "a: [",
        "",
    ],
)
def test_every_other_text_is_left_to_the_reader_of_v1(text: str) -> None:
    assert read_legacy_configuration(text) is None


@pytest.mark.parametrize(
    ("version", "body", "problem"),
    [
        ("v1beta3", "bogus: 1\n", 'strict decoding error: unknown field "bogus"'),
        ("v1beta2", "profiles: [{plugins: {multiPoint: {}}}]\n", 'unknown field "profiles[0].plugins.multiPoint"'),
        ("v1beta1", "parallelism: many\n", "KubeSchedulerConfiguration.parallelism of type int32"),
        ("v1beta1", "parallelism: 1\nparallelism: 2\n", 'key "parallelism" already set in map'),
        ("v1alpha1", "leaderElection: {leaseDuration: 5}\n", "leaderElection.leaseDuration of type string"),
    ],
)
def test_a_document_that_its_version_would_not_read_is_refused(
    convert: Convert, version: str, body: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        convert(version, body)
    assert problem in str(caught.value)


def test_plugins_of_v1alpha1_move_into_a_profile(convert: Convert, expand: Expand) -> None:
    conversion = convert("v1alpha1", COSCHEDULING)
    (expanded,) = expand(conversion, {"Coscheduling": "queue_sort permit reserve"})
    assert names(expanded, "queue_sort") == ["Coscheduling"]
    assert names(expanded, "permit") == ["Coscheduling"]
    assert names(expanded, "reserve") == ["VolumeBinding", "Coscheduling"]
    config = load_configuration(conversion.text())
    args = config.profiles[0].arguments_of("Coscheduling")
    assert isinstance(args, RawArguments)
    assert args.value() == {"permitWaitingTimeSeconds": 10}
    assert config.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert "plugins.unreserve: now part of reserve: a plugin there is asked to unreserve, too" in conversion.notes


def test_the_point_after_filtering_of_v1alpha1_prepares_scoring(convert: Convert, expand: Expand) -> None:
    body = "plugins: {postFilter: {enabled: [{name: Mine}]}}\n"
    (expanded,) = expand(convert("v1alpha1", body), {"Mine": "pre_score post_filter"})
    assert "Mine" in names(expanded, "pre_score")
    assert names(expanded, "post_filter") == ["DefaultPreemption"]
    (expanded,) = expand(convert("v1alpha2", f"profiles:\n- {body}"), {"Mine": "pre_score post_filter"})
    assert names(expanded, "post_filter") == ["DefaultPreemption", "Mine"]


def test_what_v1alpha1_said_at_its_top_goes_where_v1_has_it(convert: Convert, expand: Expand) -> None:
    conversion = convert(
        "v1alpha1",
        """
schedulerName: mine
hardPodAffinitySymmetricWeight: 30
disablePreemption: true
bindTimeoutSeconds: 100
healthzBindAddress: 0.0.0.0:10251
metricsBindAddress: 127.0.0.1
leaderElection: {resourceLock: endpoints, lockObjectName: lock, lockObjectNamespace: ns}
""",
    )
    config = load_configuration(conversion.text())
    (profile,) = config.profiles
    assert profile.scheduler_name == "mine"
    assert profile.arguments_of("InterPodAffinity") == InterPodAffinityArgs(hard_pod_affinity_weight=30)
    assert profile.arguments_of("VolumeBinding") == VolumeBindingArgs(bind_timeout_seconds=100)
    election = config.leader_election
    assert (election.resource_lock, election.resource_name, election.resource_namespace) == ("leases", "lock", "ns")
    (expanded,) = expand(conversion)
    assert names(expanded, "post_filter") == []
    assert names(expanded, "pre_enqueue") == []
    told = "\n".join(conversion.notes)
    for path in ("healthzBindAddress", "metricsBindAddress", "disablePreemption", "leaderElection.resourceLock"):
        assert f"{path}: " in told


def test_two_names_of_one_lock_must_agree(convert: Convert) -> None:
    same = convert("v1alpha1", "leaderElection: {lockObjectName: a, resourceName: a}\n")
    assert load_configuration(same.text()).leader_election.resource_name == "a"
    with pytest.raises(ConfigError, match=r"leaderElection.lockObjectName: 'a' is not what .*resourceName says"):
        convert("v1alpha1", "leaderElection: {lockObjectName: a, resourceName: b}\n")


def test_scoring_by_a_shape_in_v1beta1_is_a_strategy(convert: Convert, expand: Expand) -> None:
    conversion = convert("v1beta1", PACKED_BETA_1)
    (expanded,) = expand(conversion)
    expected = OLD_WEIGHTS | {"NodeResourcesFit": 10}
    del expected["NodeResourcesBalancedAllocation"]
    assert weights(expanded) == expected
    (entry,) = conversion.document["profiles"][0]["pluginConfig"]
    assert entry["name"] == "NodeResourcesFit"
    assert entry["args"]["scoringStrategy"]["type"] == "RequestedToCapacityRatio"
    assert load_configuration(conversion.text()).profiles[0].scheduler_name == "bin-packing"


def test_a_second_way_of_scoring_by_resources_is_refused(convert: Convert) -> None:
    body = "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesMostAllocated}]}}}]\n"
    with pytest.raises(ConfigError) as caught:
        convert("v1beta1", body)
    (problem,) = caught.value.problems
    assert problem.path == "profiles[0].plugins.score.enabled[0]"
    assert "NodeResourcesLeastAllocated and NodeResourcesMostAllocated are one plugin today" in problem.message


def test_arguments_of_a_retired_plugin_that_does_not_run_are_told_and_left_out(convert: Convert) -> None:
    body = "profiles: [{pluginConfig: [{name: NodeResourcesMostAllocated, args: {resources: []}}]}]\n"
    conversion = convert("v1beta1", body)
    assert "pluginConfig" not in conversion.document["profiles"][0]
    what = "what NodeResourcesMostAllocated is told means nothing, because it does not run"
    assert f"profiles[0].pluginConfig: {what}" in conversion.notes


def test_the_strategy_of_v1beta2_stays_as_it_is(convert: Convert, expand: Expand) -> None:
    conversion = convert(
        "v1beta2",
        """
healthzBindAddress: ":0"
metricsBindAddress: ""
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1beta2
      kind: NodeResourcesFitArgs
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 2}]}
""",
    )
    assert weights(expand(conversion)[0]) == OLD_WEIGHTS
    (entry,) = conversion.document["profiles"][0]["pluginConfig"]
    assert "apiVersion" not in entry["args"]
    assert entry["args"]["scoringStrategy"]["type"] == "MostAllocated"


def test_multi_point_of_v1beta3_stays_and_limits_of_one_cloud_go(convert: Convert, expand: Expand) -> None:
    conversion = convert(
        "v1beta3",
        """
profiles:
- schedulerName: a
  plugins:
    multiPoint: {enabled: [{name: TaintToleration, weight: 9}]}
    filter: {disabled: [{name: "*"}], enabled: [{name: NodeName}, {name: EBSLimits}, {name: CinderLimits}]}
- schedulerName: b
  plugins:
    filter: {disabled: [{name: GCEPDLimits}]}
""",
    )
    first, second = expand(conversion)
    assert weights(first) == TODAYS_WEIGHTS | {"TaintToleration": 9}
    assert names(first, "filter") == ["NodeName", "NodeVolumeLimits"]
    assert "NodeVolumeLimits" in names(second, "filter")
    assert "profiles[0].plugins.filter.enabled[1]: EBSLimits is gone; NodeVolumeLimits counts these volumes now" in (
        conversion.notes
    )


def test_the_order_that_a_document_wants_is_kept(convert: Convert, expand: Expand) -> None:
    body = 'profiles: [{plugins: {filter: {disabled: [{name: "*"}], enabled: [%s]}}}]\n'
    wanted = ["NodeResourcesFit", "TaintToleration", "Mine", "NodeName"]
    conversion = convert("v1beta1", body % ", ".join(f"{{name: {name}}}" for name in wanted))
    (expanded,) = expand(conversion, {"Mine": "filter"})
    in_tree = [name for name in names(expanded, "filter") if name != "Mine"]
    assert in_tree == ["NodeResourcesFit", "TaintToleration", "NodeName"]
    assert "Mine" in names(expanded, "filter")


def test_a_default_that_is_weighted_again_keeps_its_weight_only(convert: Convert, expand: Expand) -> None:
    scorers = "{enabled: [{name: ImageLocality, weight: 7}], disabled: [{name: NodeAffinity}]}"
    (expanded,) = expand(convert("v1beta2", f"profiles: [{{plugins: {{score: {scorers}}}}}]\n"))
    expected = OLD_WEIGHTS | {"ImageLocality": 7}
    del expected["NodeAffinity"]
    assert weights(expanded) == expected
    assert "NodeAffinity" in names(expanded, "filter")
    assert "NodeAffinity" not in names(expanded, "pre_score")


def test_a_plugin_acts_at_points_that_it_gained_since_where_it_acts_at_all(convert: Convert, expand: Expand) -> None:
    body = 'profiles: [{plugins: {preFilter: {disabled: [{name: "*"}]}, filter: {disabled: [{name: VolumeZone}]}}}]\n'
    (expanded,) = expand(convert("v1beta1", body))
    assert "VolumeRestrictions" in names(expanded, "pre_filter")
    assert "VolumeZone" not in names(expanded, "pre_filter")
    assert "NodePorts" not in names(expanded, "pre_filter")


def test_newer_plugins_stay_unless_they_are_switched_off_by_name(convert: Convert, expand: Expand) -> None:
    body = 'profiles: [{plugins: {filter: {disabled: [{name: "*"}]}, preEnqueue: {disabled: [{name: %s}]}}}]\n'
    (expanded,) = expand(convert("v1beta2", body % "SchedulingGates"))
    assert [ref.name for ref in expanded["filter"]] == ["DynamicResources", "NodeDeclaredFeatures"]
    assert "SchedulingGates" not in {ref.name for ref in expanded["pre_enqueue"]}


@pytest.mark.parametrize(
    ("body", "defaulting"),
    [
        ("", "System"),
        ("plugins: {score: {disabled: [{name: SelectorSpread}]}}", "List"),
        ("pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: [%s]}}]", "List"),
    ],
)
def test_spreading_by_default_is_what_it_was(convert: Convert, body: str, defaulting: str) -> None:
    constraint = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"
    conversion = convert("v1beta1", f"profiles: [{{{body.replace('%s', constraint)}}}]\n")
    args = load_configuration(conversion.text()).profiles[0].arguments_of("PodTopologySpread")
    assert isinstance(args, PodTopologySpreadArgs)
    assert args.defaulting_type == defaulting


def test_labels_that_v1beta1_demands_join_the_affinity_that_is_there(convert: Convert) -> None:
    conversion = convert(
        "v1beta1",
        """
profiles:
- plugins:
    filter: {enabled: [{name: NodeLabel}]}
  pluginConfig:
  - name: NodeLabel
    args: {presentLabels: [owner]}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: a, operator: Exists}]
          - matchExpressions: [{key: b, operator: Exists}]
""",
    )
    (entry,) = conversion.document["profiles"][0]["pluginConfig"]
    terms = entry["args"]["addedAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [[expression["key"] for expression in term["matchExpressions"]] for term in terms] == [
        ["a", "owner"],
        ["b", "owner"],
    ]


def test_arguments_of_1_18_are_read_without_regard_to_case(convert: Convert) -> None:
    conversion = convert(
        "v1alpha2",
        """
profiles:
- plugins:
    score: {disabled: [{name: NodeResourcesLeastAllocated}], enabled: [{name: RequestedToCapacityRatio}]}
  pluginConfig:
  - name: RequestedToCapacityRatio
    args: {Shape: [{Utilization: 0, Score: 10}, {Utilization: 100}], Resources: [{Name: cpu, Weight: 2}]}
""",
    )
    (entry,) = conversion.document["profiles"][0]["pluginConfig"]
    assert entry["args"]["scoringStrategy"]["requestedToCapacityRatio"]["shape"] == [
        {"utilization": 0, "score": 10},
        {"utilization": 100, "score": 0},
    ]
    load_configuration(conversion.text())


@pytest.mark.parametrize(
    ("version", "body", "path", "problem"),
    [
        ("v1beta2", 'healthzBindAddress: "0.0.0.0:10251"\n', "healthzBindAddress", "must be empty or have port 0"),
        (
            "v1beta1",
            "profiles: [{plugins: {filter: {enabled: [{name: ServiceAffinity}]}}}]\n",
            "profiles[0].plugins.filter.enabled[0]",
            "plugin 'ServiceAffinity' is gone, and nothing does what it did",
        ),
        (
            "v1beta2",
            "profiles: [{plugins: {score: {enabled: [{name: NodeLabel}]}}}]\n",
            "profiles[0].plugins.score.enabled[0]",
            "plugin 'NodeLabel' was no part of v1beta2 any more; leave it out",
        ),
        (
            "v1beta3",
            "profiles: [{plugins: {multiPoint: {enabled: [{name: SelectorSpread}]}}}]\n",
            "profiles[0].plugins.multiPoint.enabled[0]",
            "plugin 'SelectorSpread' was no part of v1beta3 any more; leave it out",
        ),
        (
            "v1beta1",
            "profiles: [{plugins: {permit: {enabled: [{name: A}, {name: A}]}}}]\n",
            "profiles[0].plugins.permit.enabled[1]",
            "plugin 'A' is enabled here already",
        ),
        (
            "v1alpha1",
            "algorithmSource: {policy: {}}\n",
            "algorithmSource.policy",
            "names neither a file nor a ConfigMap",
        ),
        (
            "v1alpha1",
            "algorithmSource: {provider: DefaultProvider, policy: {file: {path: /p}}}\n",
            "algorithmSource",
            "has both a policy and a provider; leave one of the two out",
        ),
        (
            "v1alpha1",
            "algorithmSource: {provider: ClusterAutoscalerProvider}\nplugins: {}\n",
            "algorithmSource",
            "says what runs, and so do plugins; leave one of the two out",
        ),
        (
            "v1alpha1",
            "algorithmSource: {provider: Foo}\n",
            "algorithmSource.provider",
            "there is no algorithm provider 'Foo'; there were DefaultProvider and ClusterAutoscalerProvider",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(
    convert: Convert, version: str, body: str, path: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        convert(version, body)
    (found,) = caught.value.problems
    assert found.path == path
    assert problem in found.message


def test_arguments_must_be_those_of_their_plugin(convert: Convert) -> None:
    body = "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {kind: NodeAffinityArgs}}]}]\n"
    with pytest.raises(ConfigError, match="args for plugin InterPodAffinity must be InterPodAffinityArgs"):
        convert("v1beta2", body)
    with pytest.raises(ConfigError, match='unknown field "scoringStrategy"'):
        convert("v1beta1", "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {}}}]}]\n")


@pytest.mark.parametrize(
    ("version", "body", "source"),
    [
        ("v1alpha1", "algorithmSource: {policy: {file: {path: /p}}}\n", PolicyFile("/p")),
        (
            "v1alpha1",
            "algorithmSource: {policy: {configMap: {namespace: ns, name: cm}}}\n",
            PolicyConfigMap("ns", "cm"),
        ),
        ("componentconfig/v1alpha1", "policyConfigFile: /p\n", PolicyFile("/p")),
        (
            "componentconfig/v1alpha1",
            "policyConfigFile: /p\npolicyConfigMap: cm\n",
            PolicyConfigMap("kube-system", "cm"),
        ),
        (
            "componentconfig/v1alpha1",
            "policyConfigFile: /p\npolicyConfigMap: cm\nuseLegacyPolicyConfig: true\n",
            PolicyFile("/p"),
        ),
        ("v1alpha1", "algorithmSource: {provider: DefaultProvider}\n", None),
        ("v1beta1", "", None),
    ],
)
def test_a_document_says_where_its_policy_is(version: str, body: str, source: object) -> None:
    api_version = version if "/" in version else f"kubescheduler.config.k8s.io/{version}"
    legacy = read_legacy_configuration(f"apiVersion: {api_version}\nkind: KubeSchedulerConfiguration\n{body}")
    assert legacy is not None
    assert legacy.policy_source == source


def test_a_policy_says_what_runs_and_the_document_the_rest(convert: Convert, expand: Expand) -> None:
    body = "schedulerName: mine\nhardPodAffinitySymmetricWeight: 3\nalgorithmSource: {policy: {file: {path: /p}}}\n"
    policy = (
        '{"kind": "Policy", "apiVersion": "v1", "predicates": [], "hardPodAffinitySymmetricWeight": 8, '
        '"priorities": [{"name": "InterPodAffinityPriority", "weight": 2}], "extenders": [{"urlPrefix": "http://x"}]}'
    )
    conversion = convert("v1alpha1", body, policy)
    assert weights(expand(conversion)[0]) == {"InterPodAffinity": 2}
    config = load_configuration(conversion.text())
    assert config.profiles[0].scheduler_name == "mine"
    assert config.profiles[0].arguments_of("InterPodAffinity") == InterPodAffinityArgs(hard_pod_affinity_weight=8)
    assert config.extenders[0].url_prefix == "http://x"


def test_the_flat_configuration_of_1_8_is_read(convert: Convert, expand: Expand) -> None:
    conversion = convert(
        "componentconfig/v1alpha1",
        """
port: 10251
address: 0.0.0.0
algorithmProvider: ClusterAutoscalerProvider
enableProfiling: false
contentType: application/json
kubeAPIQPS: 7.5
kubeAPIBurst: 20
failureDomains: kubernetes.io/hostname
leaderElection: {leaderElect: true, leaseDuration: 30s}
lockObjectName: my-lock
""",
    )
    config = load_configuration(conversion.text())
    assert (config.client_connection.qps, config.client_connection.burst) == (7.5, 20)
    assert config.client_connection.content_type == "application/json"
    assert config.leader_election.resource_name == "my-lock"
    assert not config.enable_profiling
    assert weights(expand(conversion)[0]) == OLD_WEIGHTS
    assert conversion.document["profiles"][0]["pluginConfig"] == [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    ]


def test_the_text_says_only_what_is_not_so_by_default(convert: Convert) -> None:
    conversion = convert("v1beta3", "parallelism: 16\nleaderElection: {leaderElect: true, leaseDuration: 15000ms}\n")
    assert conversion.text() == "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
