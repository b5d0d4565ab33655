"""The verdicts of a real kube-apiserver on mistakes in manifests, and of the simulator on the same ones."""

import json
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import pytest
from manifest_changes import changes
from manifest_mutations import Mistake, mistakes, sample_of_mistakes, valid_objects
from real_servers import ASSETS, Files, Server, real_server
from status_verdicts import recorded_statuses

from trio_sched.simulator import ApiServer
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError
from trio_sched.simulator.storage.object_store import copied
from trio_sched.simulator.storage.resource_types import TypeRegistry

Json = dict[str, Any]

_TYPES: Final = TypeRegistry()
_CHECK_ONLY: Final = "dryRun=All&fieldValidation=Strict"
_COMPARED_ELSEWHERE: Final = ("metadata.namespace", "metadata removed", "metadata =", "metadata.name ")
"""The path of a request has the namespace and in part the name."""
_OTHER_OBJECTS: Final = (403, 500)
"""Admission looks at other objects, or the server has failed."""


def _path(fields: Json) -> str:
    resource = _TYPES.of_kind(fields["apiVersion"], fields["kind"])
    assert resource is not None
    root = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    namespace = "/namespaces/default" if resource.namespaced else ""
    return f"{root}{namespace}/{resource.plural}"


async def _refusal(server: Server, method: str, path: str, fields: Json) -> str | None:
    """Why the server refuses it; empty if it does not, None if that cannot be compared."""
    try:
        response = await server.admin.request(method, path + "?" + _CHECK_ONLY, json=fields)
    except httpx.RemoteProtocolError:
        return None  # kube-apiserver 1.36 panics on some requests of claims
    if response.status_code in _OTHER_OBJECTS:
        return None
    answer: dict[str, Any] = response.json()
    return str(answer["message"]) if response.status_code >= 300 else ""


async def _own(simulator: ApiServer, method: str, path: str, fields: Json) -> tuple[int, Json]:
    headers = {"content-type": "application/json"}
    answer = await simulator.handle(
        method, path, _CHECK_ONLY if method == "PUT" else "", headers, json.dumps(fields).encode()
    )
    return answer.status, json.loads(answer.body)


def _own_refusal(mistake: Mistake) -> str:
    try:
        check_manifests([Manifest(copied(mistake.fields))])  # mistakes share what they have in common
    except ManifestError as error:
        return str(error)
    return ""


@pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
async def test_mistakes_are_refused_where_kube_apiserver_refuses_them(tmp_path: Path) -> None:
    different: list[str] = []
    compared = 0
    async with real_server(Files(tmp_path)) as server:
        for mistake in sample_of_mistakes(Random(), 400):
            if mistake.what.startswith(_COMPARED_ELSEWHERE):
                continue
            theirs, ours = await _refusal(server, "POST", _path(mistake.fields), mistake.fields), _own_refusal(mistake)
            compared += theirs is not None
            if theirs is not None and bool(theirs) != bool(ours):
                kind = mistake.fields["kind"]
                different.append(f"{kind}: {mistake.what}: theirs {theirs[:200]!r}, ours {ours[:200]!r}")
    assert compared > 200
    # Three fields differ on purpose; see test_verdicts.py.
    assert len(different) <= 3, "\n".join(different)


@pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
async def test_recorded_changes_are_refused_for_the_fields_that_were_recorded(tmp_path: Path) -> None:
    different: list[str] = []
    async with real_server(Files(tmp_path)) as server:
        for change in changes():
            fields = change.fields()
            theirs = await _refusal(server, "POST", _path(fields), fields)
            if theirs is None or bool(theirs) != bool(change.refused) or change.refused not in theirs:
                different.append(f"{change}: {theirs!r:.200}")
    assert different == []


@pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
async def test_changes_are_refused_where_kube_apiserver_refuses_them(tmp_path: Path) -> None:
    different: list[str] = []
    compared, rng, simulator = 0, Random(), ApiServer()
    async with real_server(Files(tmp_path)) as server:
        for fields in valid_objects():
            if fields["kind"] == "Pod":
                # Admission sets it in the simulator, not in this server, and it may not change.
                fields["spec"]["serviceAccountName"] = "default"
            theirs = await server.admin.post(_path(fields), json=fields)
            status, ours = await _own(simulator, "POST", _path(fields), fields)
            if not theirs.status_code == status == 201:
                continue  # admission looks at other objects, or it is there already
            metadata = fields["metadata"]
            path = f"{_path(fields)}/{metadata['name']}"
            changes = [mistake for mistake in mistakes(fields) if not mistake.what.startswith("metadata")]
            for mistake in rng.sample(changes, min(len(changes), 10)):
                version = theirs.json()["metadata"]["resourceVersion"]
                refusal = await _refusal(server, "PUT", path, _at_version(mistake.fields, metadata, version))
                version = ours["metadata"]["resourceVersion"]
                status, answer = await _own(simulator, "PUT", path, _at_version(mistake.fields, metadata, version))
                compared += refusal is not None
                if refusal is not None and bool(refusal) != (status >= 300):
                    what = f"{fields['kind']}: {mistake.what}"
                    different.append(f"{what}: theirs {refusal[:200]!r}, ours {str(answer)[:200]!r}")
    assert compared > 200
    assert len(different) <= 3, "\n".join(different)


@pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
async def test_recorded_statuses_are_refused_where_that_was_recorded(tmp_path: Path) -> None:
    recorded, rng, different, compared = recorded_statuses(), Random(), [], 0
    async with real_server(Files(tmp_path)) as server:
        for fields in valid_objects():
            name = fields["metadata"]["name"]
            if f"{fields['kind']} {name}" not in recorded:
                continue
            fields["metadata"].pop("namespace", None)
            created = await server.admin.post(_path(fields), json=fields)
            if created.status_code != 201:
                continue  # it is there already
            for verdict, statuses in recorded[f"{fields['kind']} {name}"].items():
                for status in rng.sample(statuses, min(len(statuses), 8)):
                    changed = {**created.json(), "status": status}
                    refusal = await _refusal(server, "PUT", f"{_path(fields)}/{name}/status", changed)
                    compared += refusal is not None
                    if refusal is not None and bool(refusal) != (verdict == "refused"):
                        different.append(f"{fields['kind']}: {status}: {refusal[:200]!r}")
    assert compared > 200
    assert different == []


def _at_version(fields: Json, metadata: Json, version: str) -> Json:
    return {**fields, "metadata": {**metadata, "resourceVersion": version}}
