from typing import Any

import pytest

from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.what_if.state_token import BadToken, StateChanged, check_unchanged, state_token

Json = dict[str, Any]


def one_node(**status: Any) -> Json:
    metadata = {"name": "n1", "uid": "u", "resourceVersion": "7", "labels": {"zone": "a"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": {"cpu": "4"}, **status}}


def one_pod(**spec: Any) -> Json:
    metadata = {"namespace": "shop", "name": "web", "uid": "p"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def token(*objects: Json) -> str:
    return state_token(map(Manifest, objects))


def test_it_has_a_digest_for_each_kind_whatever_the_order() -> None:
    found = token(one_node(), one_pod())
    assert found == token(one_pod(), one_node())
    assert [part.partition("=")[0] for part in found.split(",")] == ["Node", "Pod"]
    assert len(found) == len("Node=0123456789,Pod=0123456789")


def test_what_a_kubelet_reports_all_the_time_does_not_count() -> None:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    later = {**ready, "lastHeartbeatTime": "2026-01-01T00:05:00Z"}
    newer = one_node(conditions=[later], images=[{"names": ["x"]}])
    newer["metadata"]["resourceVersion"] = "8"
    assert token(newer) == token(one_node(conditions=[ready]))
    not_ready = one_node(conditions=[{**ready, "status": "False"}])
    assert token(not_ready) != token(newer)


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ([one_node(), one_pod()], [one_node(), one_pod(nodeName="n1")], "Pod"),
        ([one_node(), one_pod()], [one_node()], "Pod"),
        ([one_pod()], [one_node(), one_pod(nodeName="n1")], "Node, Pod"),
        ([one_pod()], [one_pod(), one_pod()], "Pod"),
    ],
)
def test_the_kinds_that_have_changed_are_named(before: list[Json], after: list[Json], kinds: str) -> None:
    check_unchanged(token(*before), token(*before))
    with pytest.raises(StateChanged, match=f"changed since: {kinds}$"):
        check_unchanged(token(*before), token(*after))


@pytest.mark.parametrize("text", ["x", "Node=", "=1", "Node=1,Node=1", "Node=1,,"])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(BadToken, match="no token"):
        check_unchanged(text, token(one_node()))
