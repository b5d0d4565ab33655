"""Pod Security admission, against what kube-apiserver 1.36 answered (``pod_security.json.gz``, dry runs)."""

import gzip
import json
from pathlib import Path
from typing import Final

import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer
from trio_sched.simulator.endpoints.messages import Response

RECORDED: Final[list[tuple[str, Json, str]]] = json.loads(
    gzip.decompress(Path(__file__).with_name("pod_security.json.gz").read_bytes())
)
"""Namespace, like ``baseline-v1-24``, then the pod, and why it was refused; empty if it was not."""
PREFIX: Final = "pod-security.kubernetes.io/"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
GOOD: Final[Json] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "main",
            "image": "app:1",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}
BAD: Final[Json] = {"hostNetwork": True, "containers": [{"name": "main", "image": "app:1"}]}


async def namespace(api: Api, name: str, **labels: str) -> Json:
    marked = {f"{PREFIX}{mode.replace('_', '-')}": value for mode, value in labels.items()}
    return await api("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": marked}})


def warnings(response: Response) -> str:
    return response.headers.get("warning", "")


async def test_pods_are_refused_with_the_text_of_kube_apiserver() -> None:
    api = Api(ApiServer())
    for name in {where for where, _, _ in RECORDED}:
        level, _, version = name.partition("-")
        await namespace(api, name, enforce=level, enforce_version=version.replace("-", "."))
    for where, pod, expected in RECORDED:
        answer = await api.raw("POST", f"/api/v1/namespaces/{where}/pods?dryRun=All", pod)
        assert isinstance(answer.body, bytes)
        message = json.loads(answer.body).get("message", "") if answer.status >= 300 else ""
        assert message == expected, (where, pod)
        assert answer.status == (403 if expected else 201)


async def test_without_labels_everything_is_taken() -> None:
    api = Api(ApiServer())
    await namespace(api, "free", audit="restricted")
    response = await api.raw("POST", "/api/v1/namespaces/free/pods", {"metadata": {"name": "p"}, "spec": BAD})
    assert response.status == 201
    assert warnings(response) == ""


@pytest.mark.parametrize(
    ("labels", "field"),
    [
        ({"enforce": "strict"}, "enforce"),
        ({"warn_version": "1.30"}, "warn-version"),
        ({"audit": ""}, "audit"),
        ({"enforce_version": "v1.030"}, "enforce-version"),
    ],
)
async def test_labels_of_new_namespaces_name_levels_and_versions(labels: dict[str, str], field: str) -> None:
    body = {"metadata": {"name": "n", "labels": {f"{PREFIX}{k.replace('_', '-')}": v for k, v in labels.items()}}}
    answer = await Api(ApiServer())("POST", "/api/v1/namespaces", body, expect=422)
    assert [cause["field"] for cause in answer["details"]["causes"]] == [f"metadata.labels[{PREFIX}{field}]"]


async def test_wrong_labels_may_stay_and_enforce_the_strictest_level() -> None:
    api = Api(ApiServer())
    server = api.server
    await namespace(api, "old")
    stored = server.store.get("namespaces", "old")
    assert stored is not None
    labels = {f"{PREFIX}enforce": "strict"}
    server.store.replace(
        "namespaces", stored, {**stored.fields, "metadata": {**stored.fields["metadata"], "labels": labels}}
    )
    patch = {"metadata": {"annotations": {"a": "b"}}}
    await api("PATCH", "/api/v1/namespaces/old", patch, content_type=MERGE)
    answer = await api("POST", "/api/v1/namespaces/old/pods", {"metadata": {"name": "p"}, "spec": BAD}, expect=403)
    assert "violates PodSecurity" in answer["message"]
    patch = {"metadata": {"labels": {f"{PREFIX}enforce": "stricter"}}}
    await api("PATCH", "/api/v1/namespaces/old", patch, content_type=MERGE, expect=422)


async def test_only_other_images_are_a_reason_to_look_at_a_pod_again() -> None:
    api = Api(ApiServer())
    await namespace(api, "n")
    path = "/api/v1/namespaces/n/pods"
    await api("POST", path, {"metadata": {"name": "p"}, "spec": BAD})
    label = {"metadata": {"labels": {f"{PREFIX}enforce": "baseline"}}}
    await api("PATCH", "/api/v1/namespaces/n", label, content_type=MERGE)
    await api("PATCH", f"{path}/p", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    patch = [{"op": "replace", "path": "/spec/containers/0/image", "value": "app:2"}]
    answer = await api("PATCH", f"{path}/p", patch, content_type=JSON_PATCH, expect=403)
    assert answer["message"] == (
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    )


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ({"enforce": "baseline"}, "baseline:latest"),
        ({"enforce": "baseline", "enforce_version": "v1.20"}, "baseline:v1.20"),
        ({"enforce": "baseline", "enforce_version": "v1.20", "warn_version": "v1.25"}, "baseline:v1.25"),
        ({"enforce": "privileged", "warn": "baseline"}, "baseline:latest"),
        ({"enforce": "baseline", "warn": "privileged"}, ""),
        ({}, ""),
    ],
)
async def test_workloads_are_taken_with_a_warning(labels: dict[str, str], shown: str) -> None:
    api = Api(ApiServer())
    await namespace(api, "n", **labels)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": BAD}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = await api.raw("POST", "/apis/apps/v1/namespaces/n/deployments", {"metadata": {"name": "d"}, "spec": spec})
    text = f'would violate PodSecurity \\"{shown}\\": host namespaces (hostNetwork=true)'
    assert made.status == 201
    assert warnings(made) == (f'299 - "{text}"' if shown else "")
    job = {"template": {"spec": {**BAD, "restartPolicy": "Never"}}}
    cron = {"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}
    made = await api.raw("POST", "/apis/batch/v1/namespaces/n/cronjobs", cron)
    assert made.status == 201
    assert warnings(made) == (f'299 - "{text}"' if shown else "")


async def test_a_stricter_level_warns_of_the_pods_that_are_there() -> None:
    api = Api(ApiServer())
    await namespace(api, "n")
    path = "/api/v1/namespaces/n/pods"
    for name in ("b", "a", "c"):
        await api("POST", path, {"metadata": {"name": name}, "spec": BAD})
    await api("POST", path, {"metadata": {"name": "good"}, "spec": GOOD})

    async def labelled(level: str) -> str:
        patch = {"metadata": {"labels": {f"{PREFIX}enforce": level}}}
        return warnings(await api.raw("PATCH", "/api/v1/namespaces/n?dryRun=All", patch, content_type=MERGE))

    head = 'existing pods in namespace \\"n\\" violate the new PodSecurity enforce level'
    assert await labelled("baseline") == (
        f'299 - "{head} \\"baseline:latest\\"", 299 - "a (and 2 other pods): host namespaces"'
    )
    assert "allowPrivilegeEscalation != false, unrestricted capabilities" in await labelled("restricted")
    assert "good" not in await labelled("restricted")
    assert await labelled("privileged") == ""
