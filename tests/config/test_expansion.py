import pytest
from attrs import evolve

from trio_sched.config.dump import dump_configuration
from trio_sched.config.errors import ConfigError
from trio_sched.config.expansion import Expanded, expand_profile, expand_profiles, used_profile
from trio_sched.config.feature_gates import FeatureGates, resolve_feature_gates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import check_configuration, load_configuration
from trio_sched.config.schema import Profile

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def profile(plugins: str) -> Profile:
    return load_configuration(f"{HEAD}profiles: [{{plugins: {plugins}}}]\n").profiles[0]


def expand(plugins: str) -> Expanded:
    return expand_profile(profile(plugins), KNOWN_PLUGINS)


def names(plugins: str, point: str) -> list[str]:
    return [ref.name for ref in expand(plugins)[point]]


def weights(plugins: str) -> list[tuple[str, int]]:
    return [(ref.name, ref.weight) for ref in expand(plugins)["score"]]


def test_the_defaults_expand_to_kube_schedulers_order_and_weights() -> None:
    assert weights("{}") == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ]
    assert names("{}", "post_filter") == ["DynamicResources", "DefaultPreemption"]
    assert names("{}", "permit") == []


def test_a_points_own_list_goes_first_where_it_overrides_and_last_where_it_adds() -> None:
    plugins = (
        "{multiPoint: {disabled: [{name: ImageLocality}]},"
        " score: {enabled: [{name: ImageLocality, weight: 7}, {name: NodeAffinity}]}}"
    )
    order = weights(plugins)
    assert order[0] == ("NodeAffinity", 1)
    assert order[-1] == ("ImageLocality", 7)


def test_a_star_closes_a_point_to_multi_point_plugins() -> None:
    assert names("{score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}}", "score") == ["ImageLocality"]


def test_a_default_enabled_again_keeps_its_place_with_the_new_weight() -> None:
    order = weights("{multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}}")
    assert order[1] == ("NodeAffinity", 9)


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        ("{filter: {enabled: [{name: Foo}]}}", 'FilterPlugin "Foo" does not exist'),
        ("{multiPoint: {enabled: [{name: Foo}]}}", 'PreFilterPlugin "Foo" does not exist'),
        ("{filter: {enabled: [{name: ImageLocality}]}}", 'plugin "ImageLocality" does not extend FilterPlugin plugin'),
        (
            "{filter: {enabled: [{name: NodeName}, {name: NodeName}]}}",
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            "{multiPoint: {enabled: [{name: NodeName}, {name: NodeName}]}}",
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            "{multiPoint: {disabled: [{name: '*'}]}}",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
        (
            "{bind: {disabled: [{name: '*'}]}}",
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            "{score: {enabled: [{name: ImageLocality, weight: -5}]}}",
            "score plugins: total score of Score plugins could overflow",
        ),
    ],
)
def test_a_profile_that_cannot_be_built_says_why(plugins: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand(plugins)
    assert str(caught.value) == problem


def test_two_placement_generators_are_one_too_many() -> None:
    points_of = {**KNOWN_PLUGINS, "Other": frozenset({"placement_generate"})}
    both = profile("{placementGenerate: {enabled: [{name: Other}, {name: TopologyPlacementGenerator}]}}")
    with pytest.raises(ConfigError, match="at most one placement generate plugin is allowed"):
        expand_profile(both, points_of)


def test_node_resources_fit_is_judged_only_where_it_runs() -> None:
    config = "pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {}}}]"
    (used,) = load_configuration(f"{HEAD}profiles: [{{{config}}}]\n").profiles
    with pytest.raises(ConfigError) as caught:
        expand_profiles([used], KNOWN_PLUGINS)
    assert str(caught.value) == (
        "initializing profiles: creating profile for scheduler name default-scheduler: initializing plugin "
        '"NodeResourcesFit": scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", '
        '"MostAllocated", "RequestedToCapacityRatio"'
    )
    off = f"{HEAD}profiles: [{{{config}, plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesFit}}]}}}}}}]\n"
    (unused,) = load_configuration(off).profiles
    assert "NodeResourcesFit" not in {ref.name for ref in expand_profile(unused, KNOWN_PLUGINS)["filter"]}


def test_profiles_that_sort_differently_are_refused() -> None:
    points_of = {**KNOWN_PLUGINS, "Other": frozenset({"queue_sort"})}
    first = evolve(profile("{}"), scheduler_name="a")
    other = "{multiPoint: {disabled: [{name: PrioritySort}], enabled: [{name: Other}]}}"
    second = evolve(profile(other), scheduler_name="b")
    with pytest.raises(ConfigError) as caught:
        expand_profiles([first, second], points_of)
    assert str(caught.value) == (
        'initializing profiles: different queue sort plugins for profile "b": "Other", first: "PrioritySort"'
    )


def test_the_used_profile_tells_only_plugins_that_run() -> None:
    config = "pluginConfig: [{name: Zed, args: {a: 1}}, {name: ImageLocality, args: {a: 1}}]"
    (given,) = load_configuration(f"{HEAD}profiles: [{{{config}}}]\n").profiles
    used = used_profile(given, KNOWN_PLUGINS)
    entries = [entry.name for entry in used.plugin_config]
    assert "ImageLocality" in entries
    assert "Zed" not in entries
    assert entries == sorted(entries)


def test_who_must_be_disabled_at_queue_sort_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        expand("{queueSort: {disabled: [{name: '*'}]}}")
    assert caught.value.hint == "Enable one at plugins.queueSort, PrioritySort for instance."
    plugins = profile("{multiPoint: {enabled: [{name: ShortestFirst}]}}")
    with pytest.raises(ConfigError) as caught:
        expand_profile(plugins, {**KNOWN_PLUGINS, "ShortestFirst": KNOWN_PLUGINS["PrioritySort"]})
    hint = "They are PrioritySort and ShortestFirst: disable all but one of them at plugins.queueSort."
    assert caught.value.hint == hint


GROUPS = resolve_feature_gates(["GenericWorkload=true"], emulated=["1.37"])
DISABLED = "podGroupPostFilter: {disabled: [{name: DefaultPreemption}]}"


def for_groups(plugins: str, gates: FeatureGates = GROUPS, **more: frozenset[str]) -> list[str]:
    """The plugins that preempt for pod groups."""
    (one,) = load_configuration(f"{HEAD}profiles: [{{plugins: {{{plugins}}}}}]\n", gates=gates).profiles
    return [ref.name for ref in expand_profile(one, {**KNOWN_PLUGINS, **more}, gates)["pod_group_post_filter"]]


def test_default_preemption_preempts_for_groups_where_it_does_for_pods() -> None:
    no_multi_point = "multiPoint: {disabled: [{name: DefaultPreemption}]}"
    explicitly = f"{no_multi_point}, postFilter: {{enabled: [{{name: DefaultPreemption}}]}}"
    assert for_groups("") == ["DefaultPreemption"]
    assert for_groups(explicitly) == ["DefaultPreemption"]
    assert for_groups(no_multi_point) == []
    assert for_groups(DISABLED) == []
    assert for_groups(f"{explicitly}, {DISABLED}") == []
    assert for_groups(explicitly, resolve_feature_gates(emulated=["1.37"])) == []
    mine = frozenset({"post_filter", "pod_group_post_filter"})
    assert for_groups("podGroupPostFilter: {enabled: [{name: Mine}]}", Mine=mine) == ["DefaultPreemption", "Mine"]


def test_before_1_37_there_is_no_point_for_preemption_for_groups() -> None:
    config = f"{HEAD}profiles: [{{plugins: {{{DISABLED}}}}}]\n"
    with pytest.raises(ConfigError, match=r'unknown field "profiles\[0\].plugins.podGroupPostFilter"'):
        load_configuration(config)
    found = check_configuration(config)[1]
    assert [one.path for one in found] == ["profiles[0].plugins.podGroupPostFilter"]
    assert not check_configuration(config, GROUPS)[1]
    assert "pod_group_post_filter" not in expand_profile(profile("{}"), KNOWN_PLUGINS)
    assert "podGroupPostFilter: {}" in dump_configuration(load_configuration(None, gates=GROUPS))
    assert "podGroupPostFilter" not in dump_configuration(load_configuration(None))
