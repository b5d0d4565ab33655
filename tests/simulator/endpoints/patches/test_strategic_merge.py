import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.patches.strategic_merge import StrategicMergeError, strategic_merge


def test_maps_are_merged_and_null_removes() -> None:
    current = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    patch = {"metadata": {"labels": {"a": None, "c": "3"}}}
    assert strategic_merge(current, patch) == {"metadata": {"labels": {"b": "2", "c": "3"}}}
    assert current == {"metadata": {"labels": {"a": "1", "b": "2"}}}


def test_conditions_are_merged_by_type_and_keep_their_place() -> None:
    current = {"status": {"conditions": [{"type": "A", "status": "False", "reason": "r"}, {"type": "B"}]}}
    patch = {"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "C"}]}}
    assert strategic_merge(current, patch, "core.v1.Pod")["status"]["conditions"] == [
        {"type": "A", "status": "True", "reason": "r"},
        {"type": "B"},
        {"type": "C"},
    ]


def test_containers_their_env_and_ports_are_merged_by_their_own_keys() -> None:
    current: Json = {
        "spec": {
            "containers": [
                {"name": "a", "env": [{"name": "X", "value": "1"}], "ports": [{"containerPort": 80, "name": "web"}]},
                {"name": "b"},
            ]
        }
    }
    patch: Json = {
        "spec": {
            "containers": [
                {
                    "name": "a",
                    "env": [{"name": "X", "value": "2"}, {"name": "Y", "value": "3"}],
                    "ports": [{"containerPort": 80, "protocol": "UDP"}],
                }
            ]
        }
    }
    merged = strategic_merge(current, patch, "core.v1.Pod")["spec"]["containers"]
    assert merged[0]["env"] == [{"name": "X", "value": "2"}, {"name": "Y", "value": "3"}]
    assert merged[0]["ports"] == [{"containerPort": 80, "name": "web", "protocol": "UDP"}]
    assert merged[1] == {"name": "b"}


@pytest.mark.parametrize(("field", "message"), [("tolerations", "core.v1.Pod"), ("taints", "core.v1.Node")])
def test_atomic_lists_are_replaced(field: str, message: str) -> None:
    current = {"spec": {field: [{"key": "a"}, {"key": "b"}]}}
    assert strategic_merge(current, {"spec": {field: [{"key": "b"}]}}, message) == {"spec": {field: [{"key": "b"}]}}


def test_service_ports_are_merged_by_port() -> None:
    current = {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 443}]}}
    merged = strategic_merge(current, {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, "core.v1.Service")
    assert merged == {"spec": {"ports": [{"port": 80, "name": "web", "targetPort": 8080}, {"port": 443}]}}


def test_finalizers_are_a_set() -> None:
    current = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic_merge(current, {"metadata": {"finalizers": ["b", "c"]}}, "core.v1.Pod")
    assert added["metadata"]["finalizers"] == ["a", "b", "c"]
    removed = strategic_merge(added, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "c"]}}, "core.v1.Pod")
    assert removed["metadata"]["finalizers"] == ["b"]


def test_an_element_can_be_deleted_by_its_key() -> None:
    current = {"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}}
    merged = strategic_merge(current, {"spec": {"volumes": [{"name": "a", "$patch": "delete"}]}}, "core.v1.Pod")
    assert merged == {"spec": {"volumes": [{"name": "b"}]}}


def test_a_list_can_be_replaced_whole() -> None:
    current = {"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}}
    merged = strategic_merge(current, {"spec": {"volumes": [{"name": "c"}, {"$patch": "replace"}]}}, "core.v1.Pod")
    assert merged == {"spec": {"volumes": [{"name": "c"}]}}


def test_a_map_can_be_replaced_or_deleted_whole() -> None:
    current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, "x": {"y": 1}}}
    patch = {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}, "x": {"$patch": "delete"}}}
    assert strategic_merge(current, patch) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_retain_keys_drops_what_is_not_retained() -> None:
    current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge(current, patch) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_element_order_is_obeyed() -> None:
    current = {"conditions": [{"type": "X"}, {"type": "PodScheduled"}]}
    patch: Json = {
        "$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "X"}],
        "conditions": [{"type": "PodScheduled", "status": "False"}],
    }
    assert strategic_merge(current, patch, "core.v1.PodStatus") == {
        "conditions": [{"type": "PodScheduled", "status": "False"}, {"type": "X"}]
    }


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(StrategicMergeError, match="does not contain declared merge key: name"):
        strategic_merge({}, {"containers": [{"image": "x"}]}, "core.v1.PodSpec")


def test_unknown_directives_are_refused() -> None:
    with pytest.raises(StrategicMergeError, match="Unknown patch type: explode"):
        strategic_merge({}, {"$patch": "explode"})


@pytest.mark.parametrize("directive", ["$retainKeys", "$setElementOrder/ports"])
def test_directives_that_are_no_lists_are_refused(directive: str) -> None:
    with pytest.raises(StrategicMergeError, match=r"must be a list, not 1|invalid patch format"):
        strategic_merge({"ports": []}, {directive: 1})
