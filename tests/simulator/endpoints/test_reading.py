import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer

PATH = "/api/v1/namespaces/default/pods"


def names(listing: Json) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


async def pods(api: Api, *wanted: str) -> None:
    for name in wanted:
        await api.create_pod(name, labels={"odd": str(ord(name[-1]) % 2)})


async def test_pages_follow_each_other_and_count_what_is_left(api: Api) -> None:
    await pods(api, "a", "b", "c", "d", "e")
    first = await api("GET", f"{PATH}?limit=2")
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = await api("GET", f"{PATH}?limit=2&continue={first['metadata']['continue']}")
    third = await api("GET", f"{PATH}?limit=2&continue={second['metadata']['continue']}")
    assert (names(second), names(third)) == (["c", "d"], ["e"])
    assert "continue" not in third["metadata"]


async def test_all_pages_show_the_version_of_the_first(api: Api) -> None:
    await pods(api, "a", "b", "c", "d")
    first = await api("GET", f"{PATH}?limit=2")
    await pods(api, "cc", "z")
    await api("DELETE", f"{PATH}/d")
    rest = await api("GET", f"{PATH}?continue={first['metadata']['continue']}")
    assert names(rest) == ["c", "d"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_pages_of_a_selection_are_full_and_leave_the_count_out(api: Api) -> None:
    await pods(api, "a", "b", "c", "d", "e")
    first = await api("GET", f"{PATH}?limit=2&labelSelector=odd%3D1")
    assert names(first) == ["a", "c"]
    assert "remainingItemCount" not in first["metadata"]
    rest = await api("GET", f"{PATH}?limit=2&labelSelector=odd%3D1&continue={first['metadata']['continue']}")
    assert names(rest) == ["e"]
    assert "continue" not in rest["metadata"]


async def test_a_page_of_a_compacted_version_is_expired(api: Api, server: ApiServer) -> None:
    await pods(api, "a", "b", "c")
    first = await api("GET", f"{PATH}?limit=2")
    await pods(api, "d")
    server.compact()
    status = await api("GET", f"{PATH}?continue={first['metadata']['continue']}", expect=410)
    assert status["reason"] == "Expired"
    assert status["message"].startswith("The provided continue parameter is too old")


async def test_any_version_is_answered_whole_whatever_the_limit(api: Api) -> None:
    await pods(api, "a", "b", "c")
    listing = await api("GET", f"{PATH}?limit=2&resourceVersion=0")
    assert names(listing) == ["a", "b", "c"]
    assert "continue" not in listing["metadata"]


async def test_an_exact_version_is_shown_as_it_was(api: Api, server: ApiServer) -> None:
    await pods(api, "a")
    then = server.store.version
    await pods(api, "b")
    exact = await api("GET", f"{PATH}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert (names(exact), exact["metadata"]["resourceVersion"]) == (["a"], str(then))
    newer = await api("GET", f"{PATH}?resourceVersion={then}&resourceVersionMatch=NotOlderThan")
    assert names(newer) == ["a", "b"]


async def test_a_future_version_is_refused_with_the_current_one(api: Api, server: ApiServer) -> None:
    status = await api("GET", f"{PATH}?resourceVersion=99999999", expect=504)
    current = server.store.version
    assert status["message"] == f"Timeout: Too large resource version: 99999999, current: {current}"
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert status["details"]["retryAfterSeconds"] == 1


@pytest.mark.parametrize(
    "query",
    ["resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch=Sometimes"],
)
async def test_invalid_version_matches_are_refused(api: Api, query: str) -> None:
    status = await api("GET", f"{PATH}?{query}", expect=422)
    assert status["details"]["kind"] == "ListOptions"


async def test_lists_are_narrowed_by_namespace_label_and_field(api: Api) -> None:
    await pods(api, "a", "b")
    await api.create_pod("a", namespace="kube-system")
    await api.bind("a", "n1")
    assert names(await api("GET", "/api/v1/pods")) == ["a", "b", "a"]
    assert names(await api("GET", PATH)) == ["a", "b"]
    assert names(await api("GET", "/api/v1/pods?labelSelector=odd%3D0")) == ["b"]
    assert names(await api("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1")) == ["a"]
    assert names(await api("GET", "/api/v1/pods?fieldSelector=metadata.namespace%3Dkube-system")) == ["a"]
