"""Changes that kube-apiserver 1.36 refuses, and how."""

from typing import Any

import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json

POD = "/api/v1/namespaces/default/pods/p"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


@pytest.mark.parametrize(
    ("kinds", "patch", "code", "said"),
    [
        ((MERGE,), {"kind": "Other"}, 422, 'no kind "Other" is registered'),
        ((MERGE,), {"apiVersion": "v2"}, 422, 'no kind "Pod" is registered for version "v2"'),
        ((MERGE, STRATEGIC), {"spec": {"containers": "x"}}, 422, '"" is invalid: patch: Invalid value: '),
        ((MERGE, STRATEGIC), {"metadata": {"namespace": "other"}}, 400, OTHER_NAMESPACE),
        ((MERGE, STRATEGIC), {"metadata": {"uid": "x"}}, 422, 'metadata.uid: Invalid value: "x": field is immutable'),
        ((MERGE, STRATEGIC), {"metadata": {"resourceVersion": "x"}}, 500, 'parsing "x": invalid syntax'),
        ((MERGE, STRATEGIC), {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, 422, "field is immutable"),
        ((MERGE, STRATEGIC), {"metadata": {"deletionGracePeriodSeconds": 5}}, 422, "field is immutable"),
        (
            (JSON_PATCH,),
            [{"op": "replace", "path": "/spec/containers/0/image", "value": 5}],
            422,
            '"" is invalid: patch',
        ),
        ((STRATEGIC,), {"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        ((STRATEGIC,), {"spec": {"containers": [{"image": "x"}]}}, 500, "map[image:x] does not contain declared merge"),
        ((MERGE, STRATEGIC), {"metadata": {"creationTimestamp": None, "uid": None}}, 200, ""),
    ],
)
async def test_patches_are_refused_as_by_kube_apiserver(
    api: Api, kinds: tuple[str, ...], patch: Any, code: int, said: str
) -> None:
    await api.create_pod("p")
    for kind in kinds:
        status = await api("PATCH", POD, patch, content_type=kind, expect=code)
        assert said in status.get("message", "")


@pytest.mark.parametrize(
    ("metadata", "code", "said"),
    [
        ({}, 400, "(p based on URL) was undeterminable: name must be provided"),
        ({"name": "p", "resourceVersion": "x"}, 500, "strconv.ParseUint"),
        ({"name": "p", "uid": "x"}, 409, "Precondition failed: UID"),
        ({"name": "p", "namespace": "other"}, 400, OTHER_NAMESPACE),
    ],
)
async def test_replacements_are_refused_as_by_kube_apiserver(api: Api, metadata: Json, code: int, said: str) -> None:
    before = await api.create_pod("p")
    status = await api("PUT", POD, {**before, "metadata": metadata}, expect=code)
    assert said in status["message"]
