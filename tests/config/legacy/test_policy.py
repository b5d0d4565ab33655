import json
from collections.abc import Callable
from typing import Any

import pytest

from trio_sched.config.errors import ConfigError
from trio_sched.config.expansion import Expanded
from trio_sched.config.legacy import Conversion
from trio_sched.config.legacy.profile_draft import NEWER_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.plugin_api.arguments import NodeAffinityArgs, PodTopologySpreadArgs

ConvertPolicy = Callable[[str], Conversion]
Expand = Callable[..., list[Expanded]]

OF_1_3 = """{
"kind" : "Policy",
"apiVersion" : "v1",
"predicates" : [
	{"name" : "PodFitsPorts"},
	{"name" : "PodFitsResources"},
	{"name" : "NoDiskConflict"},
	{"name" : "MatchNodeSelector"},
	{"name" : "HostName"}
	],
"priorities" : [
	{"name" : "LeastRequestedPriority", "weight" : 1},
	{"name" : "BalancedResourceAllocation", "weight" : 2},
	{"name" : "ServiceSpreadingPriority", "weight" : 3},
	{"name" : "EqualPriority", "weight" : 1}
	],
"alwaysCheckAllPredicates" : true
}"""


def policy(**fields: Any) -> str:
    return json.dumps({"kind": "Policy", "apiVersion": "v1", **fields})


def names(expanded: Expanded, point: str) -> set[str]:
    return {ref.name for ref in expanded[point]} - set(NEWER_PLUGINS)


def weights(expanded: Expanded) -> dict[str, int]:
    """What scores, without what stands still unless a gate is on or a pod asks for it."""
    without = {*NEWER_PLUGINS, "VolumeBinding"}
    return {ref.name: ref.weight for ref in expanded["score"] if ref.name not in without}


def test_a_policy_of_1_3_runs_what_it_names_and_what_no_policy_could_do_without(
    convert_policy: ConvertPolicy, expand: Expand
) -> None:
    (expanded,) = expand(convert_policy(OF_1_3))
    assert names(expanded, "filter") == {
        *("NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeAffinity", "NodeName"),
        *("NodeUnschedulable", "TaintToleration"),
    }
    assert weights(expanded) == {
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 2,
        "PodTopologySpread": 3,
    }
    assert names(expanded, "queue_sort") == {"PrioritySort"}
    assert names(expanded, "post_filter") == {"DefaultPreemption"}
    assert names(expanded, "bind") == {"DefaultBinder"}
    assert "SchedulingGates" in {ref.name for ref in expanded["pre_enqueue"]}
    assert names(expanded, "reserve") == set()


def test_every_change_is_told_with_its_place(convert_policy: ConvertPolicy) -> None:
    notes = convert_policy(OF_1_3).notes
    assert "predicates[0]: PodFitsPorts is NodePorts now" in notes
    assert "priorities[2]: ServiceSpreadingPriority is PodTopologySpread with defaultingType System now" in notes
    assert any(note.startswith("alwaysCheckAllPredicates: gone") for note in notes)
    assert any(note.startswith("priorities[3]: EqualPriority") for note in notes)


def test_lists_that_are_absent_mean_the_defaults_of_their_time_and_empty_ones_mean_nothing(
    convert_policy: ConvertPolicy, expand: Expand
) -> None:
    (standard,) = expand(convert_policy(policy()))
    assert weights(standard) == {
        "TaintToleration": 1,
        "NodeAffinity": 1,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 1,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert {"InterPodAffinity", "VolumeBinding", "NodeVolumeLimits", "NodeName"} <= names(standard, "filter")
    (empty,) = expand(convert_policy(policy(predicates=[], priorities=[])))
    assert names(empty, "filter") == {"NodeUnschedulable", "TaintToleration"}
    assert names(empty, "pre_filter") == set()
    assert weights(empty) == {}


def test_a_policy_in_yaml_is_read_too(convert_policy: ConvertPolicy, expand: Expand) -> None:
    text = "kind: Policy\napiVersion: v1\npredicates:\n- name: CheckVolumeBinding\n"
    (expanded,) = expand(convert_policy(text))
    for point in ("pre_filter", "filter", "reserve", "pre_bind"):
        assert "VolumeBinding" in names(expanded, point)


def test_an_extender_of_old_gets_the_names_of_v1(convert_policy: ConvertPolicy) -> None:
    extender = {
        "urlPrefix": "https://127.0.0.1:12346/scheduler",
        "BindVerb": "bind",
        "enableHttps": True,
        "weight": 5,
        "prioritizeVerb": "prioritize",
        "httpTimeout": 1_500_000_000,
        "nodeCacheCapable": False,
        "tlsConfig": {"Insecure": False, "CAFile": "/ca.crt"},
        "managedResources": [{"name": "aliyun.com/gpu-mem", "ignoredByScheduler": True}],
    }
    text = convert_policy(policy(extenders=[extender])).text()
    (found,) = load_configuration(text).extenders
    assert (found.bind_verb, found.enable_https, found.http_timeout_ns, found.weight) == (
        "bind",
        True,
        1_500_000_000,
        5,
    )
    assert found.tls_config is not None
    assert found.tls_config.ca_file == "/ca.crt"
    assert found.managed_resources[0].ignored_by_scheduler


def test_a_private_key_of_an_extender_is_shown_to_nobody_but_who_asks(convert_policy: ConvertPolicy) -> None:
    extender = {"urlPrefix": "https://x", "tlsConfig": {"certData": "Y2VydA==", "keyData": "a2V5"}}
    conversion = convert_policy(policy(extenders=[extender]))
    assert "a2V5" in conversion.text()
    assert "a2V5" not in conversion.text_without_keys()
    assert "Y2VydA==" in conversion.text_without_keys()


def test_labels_that_nodes_must_have_are_demanded_of_every_pod(convert_policy: ConvertPolicy) -> None:
    predicates = [
        {"name": "Owned", "argument": {"labelsPresence": {"labels": ["owner"], "presence": True}}},
        {"name": "Kept", "argument": {"labelsPresence": {"labels": ["retiring"], "presence": False}}},
        {"name": "GeneralPredicates"},
    ]
    conversion = convert_policy(policy(predicates=predicates))
    args = load_configuration(conversion.text()).profiles[0].arguments_of("NodeAffinity")
    assert isinstance(args, NodeAffinityArgs)
    assert args.added_affinity is not None
    required = args.added_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    (term,) = required.node_selector_terms
    assert [(e.key, e.operator) for e in term.match_expressions] == [("owner", "Exists"), ("retiring", "DoesNotExist")]


def test_labels_that_nodes_should_have_are_preferred(convert_policy: ConvertPolicy, expand: Expand) -> None:
    priorities = [
        {"name": "Fast", "weight": 4, "argument": {"labelPreference": {"label": "ssd", "presence": True}}},
        {"name": "NodeAffinityPriority", "weight": 3},
    ]
    conversion = convert_policy(policy(priorities=priorities))
    assert weights(expand(conversion)[0]) == {"NodeAffinity": 7}
    assert conversion.document["profiles"][0]["pluginConfig"][0]["args"]["addedAffinity"] == {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 4, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}
        ]
    }


def test_scoring_by_a_shape_keeps_shape_resources_and_weight(convert_policy: ConvertPolicy, expand: Expand) -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    given = {"shape": shape, "resources": [{"name": "nvidia.com/gpu", "weight": 5}]}
    priority = {"name": "Packed", "weight": 7, "argument": {"requestedToCapacityRatioArguments": given}}
    conversion = convert_policy(policy(priorities=[priority]))
    assert weights(expand(conversion)[0]) == {"NodeResourcesFit": 7}
    (entry,) = conversion.document["profiles"][0]["pluginConfig"]
    assert entry["args"]["scoringStrategy"] == {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "nvidia.com/gpu", "weight": 5}],
        "requestedToCapacityRatio": {"shape": shape},
    }


def test_scoring_by_a_shape_that_is_not_given_prefers_empty_nodes(convert_policy: ConvertPolicy) -> None:
    conversion = convert_policy(policy(priorities=[{"name": "RequestedToCapacityRatioPriority", "weight": 1}]))
    (entry,) = conversion.document["profiles"][0]["pluginConfig"]
    assert entry["args"]["scoringStrategy"]["requestedToCapacityRatio"] == {
        "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    }
    load_configuration(conversion.text())


def test_spreading_by_services_and_by_constraints_is_one_plugin_of_the_greater_weight(
    convert_policy: ConvertPolicy, expand: Expand
) -> None:
    both = [{"name": "SelectorSpreadPriority", "weight": 5}, {"name": "EvenPodsSpreadPriority", "weight": 2}]
    conversion = convert_policy(policy(priorities=both))
    assert weights(expand(conversion)[0]) == {"PodTopologySpread": 5}
    assert "priorities: SelectorSpreadPriority and EvenPodsSpreadPriority are one plugin now, of weight 5" in (
        conversion.notes
    )
    args = load_configuration(conversion.text()).profiles[0].arguments_of("PodTopologySpread")
    assert args == PodTopologySpreadArgs(default_constraints=None, defaulting_type="System")
    only_constraints = convert_policy(policy(priorities=both[1:]))
    args = load_configuration(only_constraints.text()).profiles[0].arguments_of("PodTopologySpread")
    assert isinstance(args, PodTopologySpreadArgs)
    assert args.defaulting_type == "List"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"predicates": [{"name": "Region", "argument": {"serviceAffinity": {"labels": ["region"]}}}]},
            "predicates[0]: predicate 'Region' is gone, and nothing does what it did; use pod affinity",
        ),
        ({"predicates": [{"name": "CheckServiceAffinity"}]}, "predicates[0]: predicate 'CheckServiceAffinity' is gone"),
        (
            {"priorities": [{"name": "Zone", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "zone"}}}]},
            "priorities[0]: priority 'Zone' is gone; spread by its label with defaultConstraints",
        ),
        (
            {"priorities": [{"name": "ResourceLimitsPriority", "weight": 1}]},
            "priorities[0]: priority 'ResourceLimitsPriority' is gone",
        ),
        (
            {"priorities": [{"name": "LeastRequestedPriority", "weight": 0}]},
            "priorities[0].weight: priority 'LeastRequestedPriority' must have a weight from 1 to",
        ),
        (
            {
                "priorities": [
                    {"name": "LeastRequestedPriority", "weight": 1},
                    {"name": "MostRequestedPriority", "weight": 1},
                ]
            },
            "priorities[1]: LeastRequestedPriority and MostRequestedPriority are one plugin today, NodeResourcesFit",
        ),
        (
            {"predicates": [{"name": "HostNam"}]},
            "predicates[0]: there is no predicate 'HostNam'; did you mean 'HostName'?",
        ),
        (
            {"priorities": [{"name": "LeastRequestd", "weight": 1}]},
            "did you mean 'LeastRequestedPriority'?",
        ),
        (
            {"predicates": [{"name": "X", "argument": {}}]},
            "predicates[0].argument: must have exactly one of serviceAffinity and labelsPresence",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place_and_the_mend(
    convert_policy: ConvertPolicy, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        convert_policy(policy(**fields))
    assert str(caught.value).startswith("the command line cannot be converted to v1: ")
    assert problem in str(caught.value)


def test_everything_that_cannot_be_kept_is_told_at_once(convert_policy: ConvertPolicy) -> None:
    with pytest.raises(ConfigError) as caught:
        convert_policy(policy(predicates=[{"name": "A"}, {"name": "B"}], priorities=[{"name": "C", "weight": 1}]))
    assert [problem.path for problem in caught.value.problems] == ["predicates[0]", "predicates[1]", "priorities[0]"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "unexpected end of JSON input"),
        (policy(priority=[]), 'unknown field "priority"'),
        (policy(predicates={}), "cannot unmarshal object into Go struct field Policy.predicates"),
        (
            policy(extenders=[{"httpTimeout": "5"}]),
            'missing unit in duration "5"',
        ),
        ('{"kind": "Pod", "apiVersion": "v1"}', "a policy must have kind: Policy and apiVersion: v1, got Pod of v1"),
    ],
)
def test_what_is_no_policy_is_refused(convert_policy: ConvertPolicy, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        convert_policy(text)
    assert problem in str(caught.value)


def test_the_result_is_judged_as_every_v1_document_is(convert_policy: ConvertPolicy) -> None:
    extender = {"urlPrefix": "http://x", "prioritizeVerb": "p"}
    with pytest.raises(ConfigError, match=r"extenders\[0\].weight"):
        load_configuration(convert_policy(policy(extenders=[extender])).text())
