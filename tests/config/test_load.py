import pytest

from trio_sched.config.dump import dump_configuration
from trio_sched.config.errors import ConfigError
from trio_sched.config.feature_gates import resolve_feature_gates
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.load import load_configuration
from trio_sched.config.schema import RawArguments, SchedulerConfig
from trio_sched.plugin_api.arguments import (
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    VolumeBindingArgs,
)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def load(body: str, **flags: object) -> SchedulerConfig:
    return load_configuration(HEAD + body, flags=FlagOverrides(**flags))  # type: ignore[arg-type]


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_configuration(text)
    return caught.value


def test_an_empty_configuration_has_every_default_and_one_profile() -> None:
    config = load("")
    assert config == load_configuration(None)
    (profile,) = config.profiles
    assert profile.scheduler_name == "default-scheduler"
    assert [ref.name for ref in profile.plugins["multi_point"].enabled][:3] == [
        "SchedulingGates",
        "PrioritySort",
        "NodeUnschedulable",
    ]
    assert profile.arguments_of("InterPodAffinity") == InterPodAffinityArgs()
    assert profile.arguments_of("ImageLocality") is None


def test_every_problem_is_reported_at_once_in_order_with_its_path() -> None:
    error = refusal(
        HEAD + "parallelism: 0\nleaderElection: {leaseDuration: 5s}\nprofiles:\n- schedulerName: ''\n"
        "  pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 500}}]\npodInitialBackoffSeconds: 20\n"
    )
    assert [problem.path for problem in error.problems] == [
        "leaderElection.leaseDuration",
        "parallelism",
        "profiles[0].schedulerName",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
        "podMaxBackoffSeconds",
    ]
    assert str(error).startswith('[leaderElection.leaseDuration: Invalid value: "10s": must be greater than `Renew')


def test_one_problem_stands_without_brackets() -> None:
    assert str(refusal(HEAD + "percentageOfNodesToScore: 101\n")) == (
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Object 'Kind' is missing in ''"),
        (
            "kind: KubeSchedulerConfiguration\n",
            "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration\n'",
        ),
        (
            "- a\n",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct "
            r'{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }',
        ),
        ("apiVersion: a/b/c\nkind: X\n", "unexpected GroupVersion string: a/b/c"),
        (
            "apiVersion: v1\nkind: Policy\n",
            'no kind "Policy" is registered for version "v1" in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"',
        ),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeResourcesFitArgs\n",
            "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, "
            "Kind=NodeResourcesFitArgs: ",
        ),
        (
            HEAD + "foo: 1\nparallelism: 1\nparallelism: 2\nprofiles:\n- pluginConfig:\n"
            "  - {name: NodeAffinity, args: {bad: 1, worse: 2}}\n",
            'strict decoding error: yaml: unmarshal errors:\n  line 5: key "parallelism" already set in map, '
            'unknown field "foo", decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for '
            'plugin NodeAffinity: strict decoding error: unknown field "bad", unknown field "worse"',
        ),
        (
            HEAD + "foo: 1\nprofiles: [{pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: x}}]}]\n",
            "decoding .profiles[0].pluginConfig[0]: decoding args for plugin VolumeBinding: json: cannot unmarshal "
            "string into Go struct field VolumeBindingArgs.bindTimeoutSeconds of type int64",
        ),
        (
            HEAD + "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {kind: NodeAffinityArgs}}]}]\n",
            "decoding .profiles[0].pluginConfig[0]: args for plugin InterPodAffinity were not of type "
            "InterPodAffinityArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io",
        ),
    ],
)
def test_a_document_of_the_wrong_kind_or_shape_is_refused(text: str, problem: str) -> None:
    assert str(refusal(text)) == problem


def test_arguments_become_the_classes_of_their_plugins() -> None:
    config = load(
        "profiles:\n- pluginConfig:\n"
        "  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: a.b/c}]}}}\n"
        "  - {name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
        " {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]}}}}\n"
        "  - {name: Elsewhere, args: {mode: 0x10, deep: [1.5]}}\n"
    )
    fit, affinity, raw = (config.profiles[0].arguments_of(n) for n in ("NodeResourcesFit", "NodeAffinity", "Elsewhere"))
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy.resources == (ResourceSpec(name="a.b/c", weight=1),)
    assert isinstance(affinity, NodeAffinityArgs)
    assert affinity.added_affinity is not None
    assert isinstance(raw, RawArguments)
    assert raw.value() == {"deep": [1.5], "mode": 16}


def test_gates_decide_which_defaults_there_are() -> None:
    gates = resolve_feature_gates(["DRASchedulerFilterTimeout=false,StorageCapacityScoring=true"])
    profile = load_configuration(HEAD, gates=gates).profiles[0]
    dynamic, binding = profile.arguments_of("DynamicResources"), profile.arguments_of("VolumeBinding")
    assert isinstance(dynamic, DynamicResourcesArgs)
    assert dynamic.filter_timeout_ns is None
    assert isinstance(binding, VolumeBindingArgs)
    assert binding.shape is not None
    assert [(point.utilization, point.score) for point in binding.shape] == [(0, 10), (100, 0)]


def test_since_1_37_storage_scores_have_a_shape_by_default_and_groups_a_point() -> None:
    shape = "{shape: [{utilization: 0, score: 1}, {utilization: 9, score: 2}]}"
    config = f"{HEAD}profiles: [{{pluginConfig: [{{name: VolumeBinding, args: {shape}}}]}}]\n"
    old, new = (resolve_feature_gates(emulated=[version]) for version in ("1.36", "1.37"))
    refused = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
    with pytest.raises(ConfigError, match=refused):
        load_configuration(config, gates=old)
    assert "shape:" in dump_configuration(load_configuration(config, gates=new))
    written = [dump_configuration(load_configuration(None, gates=gates)) for gates in (old, new)]
    for shown in ("shape:", "podGroupPostFilter:"):
        assert [shown in one for one in written] == [False, True]


def test_leader_election_flags_win_over_the_file_and_are_judged_with_it() -> None:
    body = "leaderElection: {resourceName: file, leaseDuration: 25s}\n"
    config = load(body, resource_name="flag")
    assert config.leader_election.resource_name == "flag"
    assert config.leader_election.lease_duration_ns == 25_000_000_000
    with pytest.raises(ConfigError, match=r"leaderElection\.resourceName: Required value"):
        load(body, resource_name="")


def test_deprecated_flags_count_only_without_a_file() -> None:
    flags = FlagOverrides(kubeconfig="/here", qps=7.0, burst=-1, profiling=False, lease_duration_ns=1)
    without = load_configuration(None, flags=flags)
    assert without.client_connection.kubeconfig == "/here"
    assert without.client_connection.burst == -1
    assert not without.enable_profiling
    assert without.leader_election.lease_duration_ns == 1
    with_file = load("", kubeconfig="/here", qps=7.0, burst=-1, profiling=False)
    assert with_file == load("")


def test_a_second_profile_needs_a_name_and_the_same_queue_sort() -> None:
    error = refusal(
        HEAD + "profiles:\n- {schedulerName: a}\n- plugins: {queueSort: {enabled: [{name: Foo, weight: 2}]}}\n"
    )
    assert list(map(str, error.problems)) == [
        "profiles[1].schedulerName: Required value",
        'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"Foo","Weight":2}],"Disabled":null}: '
        "must be the same for all profiles",
    ]


def test_arguments_of_a_shared_queue_sort_must_be_equal() -> None:
    def profile(name: str, args: str) -> str:
        plugins = "plugins: {queueSort: {enabled: [{name: Q}]}}"
        return f"{{schedulerName: {name}, {plugins}, pluginConfig: [{{name: Q, args: {args}}}]}}"

    text = HEAD + f"profiles: [{profile('a', '{b: 1}')}, {profile('b', '{b: <2>}')}]\n"
    problem = r'Invalid value: {"b":"\u003c2\u003e"}: queueSort must be the same for all profiles'
    assert str(refusal(text)) == f"profiles[1].pluginConfig.args: {problem}"


@pytest.mark.parametrize("text", ['{"a":' * 5000, "[" * 5000, "- " * 5000])  # libyaml may refuse it first
def test_bottomless_nesting_is_refused(text: str) -> None:
    assert str(refusal(text)).endswith("exceeded max depth of 250")


def test_a_number_longer_than_python_converts_is_not_an_integer_to_compare_labels_with() -> None:
    term = "{matchExpressions: [{key: disk, operator: Gt, values: ['" + "9" * 5000 + "']}]}"
    required = f"{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}}}"
    problem = refusal(
        f"{HEAD}profiles: [{{pluginConfig: [{{name: NodeAffinity, args: {{addedAffinity: {required}}}}}]}}]"
    )
    assert "for 'Gt', 'Lt' operators, the value must be an integer" in str(problem)


def test_sharding_is_off_unless_the_file_says_how_many_shards_there_are() -> None:
    assert load("").sharding is None
    sharding = load("sharding: {shards: 16}").sharding
    assert sharding is not None
    assert (sharding.shards, sharding.node_label) == (16, "")
    by_label = load("sharding: {shards: 16, nodeLabel: example.com/pool}").sharding
    assert by_label is not None
    assert by_label.node_label == "example.com/pool"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("sharding: {}", "sharding.shards: Invalid value: 0: must be between 1 and 256"),
        ("sharding: {shards: 257}", "sharding.shards: Invalid value: 257: must be between 1 and 256"),
        (
            "sharding: {shards: 2}\nleaderElection: {leaderElect: false}",
            "leaderElection.leaderElect: Invalid value: false: must be true with sharding: its times, its name and its "
            "namespace are those of the leases of shards",
        ),
        (
            "sharding: {shards: 2}\n"
            "extenders: [{urlPrefix: 'http://x', filterVerb: f}, {urlPrefix: 'http://y', bindVerb: b}]",
            'extenders[1].bindVerb: Invalid value: "b": must be empty with sharding, as an extender would bind pods '
            "without naming their version",
        ),
        (
            "sharding: {shards: 2}\ndelayCacheUntilActive: true",
            "delayCacheUntilActive: Invalid value: true: must be false with sharding, as every replica is active",
        ),
    ],
)
def test_what_does_not_go_with_sharding_is_refused(body: str, problem: str) -> None:
    assert str(refusal(HEAD + body)) == problem


def test_shards_must_be_a_number() -> None:
    assert "shards" in str(refusal(HEAD + "sharding: {shards: many}"))
    assert "sharding" in str(refusal(HEAD + "sharding: 4"))


def test_the_label_of_shards_must_be_one() -> None:
    problem = str(refusal(HEAD + "sharding: {shards: 2, nodeLabel: pool of nodes}"))
    assert problem.startswith('sharding.nodeLabel: Invalid value: "pool of nodes": name part must consist of')
