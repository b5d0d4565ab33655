import json
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx
import pytest
import trio
from old_server import OldServer, aggregated
from trio.testing import MockClock

from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.kube_client.kinds import NODE_KIND
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.kube_client.versions.discovery import DISCOVERY_SECONDS, server_version
from trio_sched.kube_client.versions.served_versions import (
    ASK_AGAIN_SECONDS,
    LOOK_FOR_BETTER_SECONDS,
    NotServed,
    ServedVersions,
)
from trio_sched.kube_client.watch import Reflector
from trio_sched.objects.changes import Changes, Listed
from trio_sched.simulator import ApiServer, InProcessTransport, trio_clock

CLAIM = KINDS["ResourceClaim"]
CLASS = KINDS["DeviceClass"]
DEVICES = "resource.k8s.io"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


@pytest.fixture
async def server() -> OldServer:
    return OldServer(InProcessTransport(ApiServer(now=trio_clock())), {DEVICES: ("v1", "v1beta2")})


@pytest.fixture
async def client(server: OldServer) -> AsyncIterator[KubeClient]:
    async with connect(ConnectionSettings(server="http://api.test"), transport=server, qps=-1) as client:
        yield client


@pytest.fixture
def served(client: KubeClient) -> ServedVersions:
    return ServedVersions(client)


async def test_the_best_version_is_used_and_the_question_asked_once(served: ServedVersions, server: OldServer) -> None:
    found: list[Any] = []

    async def ask() -> None:
        found.append(await served.version_of(CLAIM))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert found == [CLAIM] * 5
    assert server.asked == ["GET /apis"]


async def test_kinds_of_one_version_cost_no_question(served: ServedVersions, server: OldServer) -> None:
    assert await served.version_of(NODE_KIND) is NODE_KIND
    assert server.asked == []


BAD: list[Any] = [
    403,
    404,
    500,
    b"<html>hello</html>",
    b"[]",
    b"null",
    b'{"kind":"APIGroupDiscoveryList","items":7}',
    b'{"kind":"APIGroupDiscoveryList"}',
    b'{"kind":"Status"}',
    b"\xff\xfe",
    b"[" * 100_000,
    aggregated({DEVICES: ("v1beta1",)}, freshness="Stale"),
]


@pytest.mark.parametrize("answer", BAD, ids=lambda answer: str(answer)[:30])
async def test_whatever_discovery_says_the_version_that_answers_is_found(
    served: ServedVersions, server: OldServer, answer: Any
) -> None:
    server.discovery, server.served = answer, {DEVICES: ("v1beta1",)}
    page: list[Any] = []
    await served.use(CLASS, lambda kind: verbs.list_pages(served.client, kind, page.append))
    assert len(page) == 1
    assert server.asked[-1] == "GET /apis/resource.k8s.io/v1beta1/deviceclasses"


async def test_a_discovery_that_hangs_is_given_up(
    served: ServedVersions, client: KubeClient, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async def hang(*_args: Any, **_kwargs: Any) -> bytes:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(KubeClient, "call", hang)
    assert await served.version_of(CLAIM) is CLAIM
    assert trio.current_time() == pytest.approx(DISCOVERY_SECONDS)


async def test_groups_listed_one_by_one_are_understood(server: OldServer, served: ServedVersions) -> None:
    versions = [{"version": "v1beta2"}, {"version": "v9"}]
    server.discovery = json.dumps({"kind": "APIGroupList", "groups": [{"name": DEVICES, "versions": versions}]})
    server.served = {DEVICES: ("v1beta2",)}
    resources = {"kind": "APIResourceList", "resources": [{"name": "deviceclasses"}]}

    class OnlyLists(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path == "/apis/resource.k8s.io/v1beta2":
                return httpx.Response(200, json=resources)
            return await server.handle_async_request(request)

    async with connect(ConnectionSettings(server="http://api.test"), transport=OnlyLists(), qps=-1) as client:
        assert (await ServedVersions(client).version_of(CLASS)).version == "v1beta2"


async def test_a_kind_that_is_not_served_is_asked_for_again_after_minutes(
    served: ServedVersions, server: OldServer, autojump_clock: MockClock
) -> None:
    server.served = {DEVICES: ()}

    async def listed() -> None:
        await served.use(CLASS, lambda kind: verbs.list_pages(served.client, kind, lambda _page: None))

    for _ in range(3):
        with pytest.raises(NotServed, match="v1, v1beta2, v1beta1, v1alpha3 of deviceclasses"):
            await listed()
    assert served.is_missing(CLASS)
    assert not served.is_missing(CLAIM), "nobody has looked"
    assert len(server.asked) == 5, "the discovery, and each version once"
    server.served = {DEVICES: ("v1beta2",)}
    await trio.sleep(ASK_AGAIN_SECONDS)
    await listed()
    assert not served.is_missing(CLASS)


async def test_an_object_that_does_not_exist_is_no_reason_to_ask_again(
    served: ServedVersions, server: OldServer
) -> None:
    with pytest.raises(NotFound) as caught:
        await served.use(CLASS, lambda kind: verbs.get(served.client, kind, "none"))
    assert not isinstance(caught.value, NotServed)
    assert server.asked == ["GET /apis", f"GET {CLASSES}/none"]


async def create_class(server: OldServer, name: str) -> None:
    body = json.dumps({"apiVersion": f"{DEVICES}/v1", "kind": "DeviceClass", "metadata": {"name": name}})
    request = httpx.Request(
        "POST", f"http://api.test{CLASSES}", content=body, headers={"content-type": "application/json"}
    )
    assert (await server.inner.handle_async_request(request)).status_code == 201


async def test_a_watch_goes_on_in_another_version_and_nothing_is_reported_deleted(
    served: ServedVersions, server: OldServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    batches: list[Listed[Any] | Changes[Any]] = []
    errors: list[KubeClientError] = []
    reflector = Reflector(
        served.client,
        CLASS,
        batches.append,
        Random(1),
        on_error=lambda _plural, error: errors.append(error),
        served=served,
    )
    await create_class(server, "a")
    await nursery.start(reflector.run)
    for number, versions in enumerate([("v1beta1",), ("v1beta2",), ("v1",)]):
        server.served = {DEVICES: versions}
        await trio.sleep(700)  # the watch has ended meanwhile
        assert server.asked[-1] == f"GET /apis/resource.k8s.io/{versions[0]}/deviceclasses"
        await create_class(server, f"b{number}")
        await trio.sleep(1)
        assert len(reflector.objects) == number + 2
    assert reflector.lists == 1
    changes = [change for batch in batches[1:] if isinstance(batch, Changes) for change in batch.changes]
    assert [change.type for change in changes] == ["ADDED"] * 3
    assert errors == []


def followed(served: ServedVersions) -> Reflector[Any]:
    return Reflector(served.client, CLASS, lambda _batch: None, Random(1), served=served)


async def test_a_better_version_is_taken_while_the_one_in_use_still_answers(
    served: ServedVersions, server: OldServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    server.served = {DEVICES: ("v1beta1",)}
    reflector = followed(served)
    await create_class(server, "a")
    await nursery.start(reflector.run)
    server.served = {DEVICES: ("v1beta1", "v1")}
    await trio.sleep(LOOK_FOR_BETTER_SECONDS + 700)  # the longest watch
    assert server.asked[-1] == f"GET {CLASSES}"
    assert (len(reflector.objects), reflector.lists) == (1, 1)


async def test_looking_for_a_better_version_costs_a_question_in_ten_minutes_and_nothing_where_there_is_none(
    served: ServedVersions, server: OldServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await nursery.start(followed(served).run)
    await trio.sleep(10 * LOOK_FOR_BETTER_SECONDS)
    assert server.asked.count("GET /apis") == 1, "it is the best that there is"
    server.served = {DEVICES: ("v1beta1",)}
    await trio.sleep(2 * LOOK_FOR_BETTER_SECONDS)
    server.discovery, before = 503, server.asked.count("GET /apis")
    for _ in range(3):
        nursery.start_soon(followed(served).run)
    await trio.sleep(10 * LOOK_FOR_BETTER_SECONDS)
    assert before + 5 <= server.asked.count("GET /apis") <= before + 10
    assert server.asked[-1] == "GET /apis/resource.k8s.io/v1beta1/deviceclasses", "what was known holds"


async def test_a_kind_is_emptied_only_if_the_server_says_that_it_serves_none(
    served: ServedVersions, server: OldServer, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    errors: list[KubeClientError] = []
    reflector = Reflector(
        served.client,
        CLASS,
        lambda _batch: None,
        Random(1),
        on_error=lambda _plural, error: errors.append(error),
        served=served,
    )
    await create_class(server, "a")
    await nursery.start(reflector.run)
    server.served, server.discovery = {DEVICES: ()}, 403
    await trio.sleep(1500)
    assert isinstance(errors[-1], NotServed)
    assert len(reflector.objects) == 1, "nothing is known"
    server.discovery = None
    await trio.sleep(2 * ASK_AGAIN_SECONDS)
    assert len(reflector.objects) == 0
    asked = len(server.asked)
    await trio.sleep(600)
    assert len(server.asked) - asked <= 4 * 4, "it costs next to nothing"
    server.served = {DEVICES: ("v1",)}
    await trio.sleep(2 * ASK_AGAIN_SECONDS)
    assert len(reflector.objects) == 1


async def test_the_version_of_the_server(client: KubeClient, server: OldServer) -> None:
    found = await server_version(client)
    assert found is not None
    assert found >= (1, 36)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"major":"1","minor":"31+"}', (1, 31)),
        (b'{"major":"1","minor":""}', None),
        (b'{"major":1,"minor":2}', None),
        (b"nothing", None),
        (b"{}", None),
    ],
)
async def test_versions_as_clouds_write_them(answer: bytes, expected: tuple[int, int] | None) -> None:
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=answer))
    async with connect(ConnectionSettings(server="http://api.test"), transport=transport) as client:
        assert await server_version(client) == expected
