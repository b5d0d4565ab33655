"""Lists and maps without anything in them are kept nowhere, as on an API server."""

from pathlib import Path

from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import read_manifests
from trio_sched.simulator.registry.empty_parts import may_have_empty_parts, without_empty_parts

PATCH = "application/merge-patch+json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(**pod_spec: object) -> Json:
    containers = [{"name": "main", "image": "app:1", "env": [], "resources": {"limits": {}}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers, **pod_spec}},
        },
    }


EMPTY = {"tolerations": [], "nodeSelector": {}, "affinity": {}, "volumes": [{"name": "v", "emptyDir": {}}]}


async def test_empty_lists_and_maps_are_left_out_and_empty_objects_kept() -> None:
    created = await Api(ApiServer())("POST", DEPLOYMENTS, deployment(**EMPTY))
    spec = created["spec"]["template"]["spec"]
    assert "annotations" not in created["metadata"]
    assert "tolerations" not in spec
    assert "nodeSelector" not in spec
    assert spec["affinity"] == {}
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert "env" not in spec["containers"][0]
    assert spec["containers"][0]["resources"] == {}


async def test_a_change_to_empty_lists_is_none() -> None:
    api = Api(ApiServer())
    created = await api("POST", DEPLOYMENTS, deployment())
    patch = {"spec": {"template": {"spec": {"tolerations": [], "nodeSelector": {}}}}}
    changed = await api("PATCH", f"{DEPLOYMENTS}/web", patch, content_type=PATCH)
    assert changed == created
    patch["spec"]["template"]["spec"]["hostname"] = "h"
    changed = await api("PATCH", f"{DEPLOYMENTS}/web", patch, content_type=PATCH)
    assert changed["metadata"]["generation"] == 2
    assert "tolerations" not in changed["spec"]["template"]["spec"]


async def test_what_may_not_change_may_become_empty() -> None:
    api = Api(ApiServer())
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    spec = {**deployment()["spec"], "serviceName": "web"}
    created = await api("POST", path, {"metadata": {"name": "db"}, "spec": spec})
    created["spec"]["selector"]["matchExpressions"] = []
    changed = await api("PUT", f"{path}/db", created)
    assert changed["spec"]["selector"].keys() == {"matchLabels"}


def test_manifests_are_the_same_as_requests(tmp_path: Path) -> None:
    file = tmp_path / "pod.json"
    file.write_text(
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{}},'
        '"spec":{"tolerations":[],"containers":[{"name":"c","image":"i","args":[]}]}}'
    )
    [manifest] = check_manifests(read_manifests([file]).manifests).manifests
    assert "labels" not in manifest.fields["metadata"]
    assert "tolerations" not in manifest.fields["spec"]
    assert "args" not in manifest.fields["spec"]["containers"][0]


def test_what_is_in_maps_and_lists_is_looked_through() -> None:
    claim = {"spec": {"devices": {"requests": [{"exactly": {"selectors": [], "count": 0}}], "config": []}}}
    assert may_have_empty_parts(claim)
    left = without_empty_parts(claim, "resource.v1.ResourceClaim")
    assert left == {"spec": {"devices": {"requests": [{"exactly": {"count": 0}}]}}}


def test_objects_that_are_empty_are_no_reason_to_look() -> None:
    assert not may_have_empty_parts({"spec": {"securityContext": {}, "emptyDir": {}}})


def test_what_is_nested_deep_is_kept() -> None:
    deep: Json = {}
    for _ in range(5000):
        deep = {"a": deep}
    fields = {"metadata": {"labels": {}}, "data": deep}
    assert without_empty_parts(fields, "apps.v1.ControllerRevision") == {"metadata": {}, "data": deep}
