from collections.abc import Callable
from typing import Any

import pytest
from simulator_api import Api, Json

from trio_sched.simulator import ApiServer

Applier = Callable[..., Any]

PATH = "/api/v1/namespaces/default/configmaps/c"


@pytest.fixture
def apply(api: Api) -> Applier:
    async def apply(data: Json, *, by: str, force: bool = False, expect: int = 200) -> Json:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}
        query = f"fieldManager={by}" + ("&force=true" if force else "")
        answer: Json = await api(
            "PATCH", f"{PATH}?{query}", body, content_type="application/apply-patch+yaml", expect=expect
        )
        return answer

    return apply


async def test_applying_creates_and_then_changes(apply: Applier) -> None:
    made = await apply({"a": "1"}, by="me", expect=201)
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["fieldsV1"]) == ("me", "Apply", {"f:data": {"f:a": {}}})
    assert (await apply({"a": "2"}, by="me"))["data"] == {"a": "2"}


async def test_fields_no_longer_applied_are_removed(apply: Applier) -> None:
    await apply({"a": "1", "b": "1"}, by="me", expect=201)
    assert (await apply({"a": "1"}, by="me"))["data"] == {"a": "1"}


async def test_managers_do_not_change_fields_of_other_managers(apply: Applier) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    both = await apply({"b": "2"}, by="you")
    assert both["data"] == {"a": "1", "b": "2"}
    assert [entry["manager"] for entry in both["metadata"]["managedFields"]] == ["me", "you"]
    assert (await apply({}, by="you"))["data"] == {"a": "1"}


async def test_different_values_of_two_managers_conflict_unless_forced(apply: Applier) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    status = await apply({"a": "2"}, by="you", expect=409)
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "me" using v1: .data.a'
    assert status["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    forced = await apply({"a": "2"}, by="you", force=True)
    assert forced["data"] == {"a": "2"}
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["you"]


async def test_equal_values_of_two_managers_are_shared(apply: Applier) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    await apply({"a": "1"}, by="you")
    assert (await apply({}, by="me"))["data"] == {"a": "1"}


async def test_applying_the_same_again_makes_no_version(apply: Applier, server: ApiServer) -> None:
    await apply({"a": "1"}, by="me", expect=201)
    version = server.store.version
    await apply({"a": "1"}, by="me")
    assert server.store.version == version


async def test_applying_needs_a_field_manager(api: Api) -> None:
    status = await api("PATCH", PATH, {}, content_type="application/apply-patch+yaml", expect=422)
    assert "fieldManager: Required value" in status["message"]
