import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
import trio
import trio.testing
from attrs import define, field
from raw_server import Exchange, StartServer
from trio.testing import MockClock

from trio_sched.kube_client import watch
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.errors import KubeClientError
from trio_sched.kube_client.kinds import LEASE_KIND, NODE_KIND, POD_KIND, Kind
from trio_sched.kube_client.reachability import Reachability
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.kube_client.watch import list_and_watch
from trio_sched.objects.changes import Changes, Listed
from trio_sched.objects.pod import Pod

SETTINGS = ConnectionSettings(server="http://api.test")


def pod(name: str, version: int, *, uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "d", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def line(event_type: str, subject: dict[str, Any]) -> bytes:
    return json.dumps({"type": event_type, "object": subject}).encode() + b"\n"


def status(code: int, reason: str, message: str = "because") -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}})


def listing(version: int, *items: dict[str, Any], continued: str = "") -> httpx.Response:
    metadata = {"resourceVersion": str(version)} | ({"continue": continued} if continued else {})
    return httpx.Response(200, json={"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})


class Stream(httpx.AsyncByteStream):
    """A watch's body: the given pieces, a pause where a number is given, an error where one is."""

    def __init__(self, *script: bytes | float | Exception) -> None:
        self.script = script

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in self.script:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, bytes):
                await trio.lowlevel.checkpoint()
                yield step
            else:
                await trio.sleep(step)


def watching(*script: bytes | float | Exception) -> httpx.Response:
    return httpx.Response(200, stream=Stream(*script))


FOREVER = 1e9


@define(eq=False)
class Server(httpx.AsyncBaseTransport):
    """Answers lists and watches in the order given; the last watch lasts forever."""

    lists: list[httpx.Response] = field(factory=list)
    watches: list[httpx.Response | Exception] = field(factory=list)
    asked: list[tuple[str, dict[str, str], float]] = field(factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        query = {key: values[0] for key, values in parse_qs(request.url.query.decode()).items()}
        is_watch = "watch" in query
        self.asked.append(("watch" if is_watch else "list", query, trio.current_time()))
        if not is_watch:
            return self.lists.pop(0)
        answer = self.watches.pop(0) if self.watches else watching(FOREVER)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _, _ in self.asked]


@define(eq=False)
class Consumer:
    """What the daemon does with batches, in small: keeps names and versions."""

    batches: list[Any] = field(factory=list)
    trouble: list[KubeClientError] = field(factory=list)
    reachability: Reachability = field(factory=Reachability)

    def deliver(self, batch: Listed[Any] | Changes[Any]) -> None:
        self.batches.append(batch)

    def note(self, plural: str, trouble: KubeClientError) -> None:
        self.trouble.append(trouble)

    @property
    def changes(self) -> list[tuple[str, str | None, str | None]]:
        def told(subject: Any) -> str | None:
            return subject and f"{subject.metadata.name}@{subject.metadata.resource_version}"

        batches = [batch for batch in self.batches if isinstance(batch, Changes)]
        return [(change.type, told(change.old), told(change.new)) for batch in batches for change in batch.changes]


@asynccontextmanager
async def following(
    server: Server, kind: Kind[Any] = POD_KIND, *, reachability: Reachability | None = None
) -> AsyncIterator[Consumer]:
    consumer = Consumer(reachability=reachability or Reachability())
    follower: Callable[..., Any] = partial(list_and_watch, random=Random(1), on_error=consumer.note)
    connected = connect(SETTINGS, qps=-1, transport=server, reachability=consumer.reachability)
    async with connected as client, trio.open_nursery() as nursery:
        await nursery.start(follower, client, kind, consumer.deliver)
        yield consumer
        nursery.cancel_scope.cancel()


async def test_a_list_comes_first_and_the_watch_goes_on_from_there(autojump_clock: MockClock) -> None:
    server = Server(
        lists=[listing(10, pod("a", 1), pod("b", 2))],
        watches=[
            watching(
                line("ADDED", pod("c", 11)), line("MODIFIED", pod("a", 12)), line("DELETED", pod("b", 13)), FOREVER
            )
        ],
    )
    async with following(server) as consumer:
        first = consumer.batches[0]
        assert isinstance(first, Listed)
        assert ([listed.name for listed in first.objects], first.resource_version) == (["a", "b"], "10")
        await trio.sleep(1)
    assert consumer.changes == [("ADDED", None, "c@11"), ("MODIFIED", "a@1", "a@12"), ("DELETED", "b@2", "b@13")]
    assert consumer.trouble == []
    _, asked, _ = server.asked[1]
    assert asked.pop("timeoutSeconds").isdecimal()
    assert asked == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "10",
        "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
    }


async def test_one_read_is_one_batch_wherever_lines_are_torn(autojump_clock: MockClock) -> None:
    text = b"".join(line("ADDED", pod(f"p{number}", 10 + number)) for number in range(4))
    cut = len(text) // 2 + 5
    server = Server(lists=[listing(1)], watches=[watching(text[:cut], text[cut:-3], text[-3:], FOREVER)])
    async with following(server) as consumer:
        await trio.sleep(1)
    assert [change[2] for change in consumer.changes] == ["p0@10", "p1@11", "p2@12", "p3@13"]
    assert [len(batch.changes) for batch in consumer.batches[1:]] == [2, 1, 1]


async def test_long_lists_come_in_pages(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(5, pod("a", 1), continued="next"), listing(5, pod("b", 2))])
    async with following(server) as consumer:
        assert [listed.name for listed in consumer.batches[0].objects] == ["a", "b"]
    (_, first, _), (_, second, _) = server.asked[:2]
    assert first["limit"] == second["limit"] == "500"
    assert second["continue"] == "next"


async def test_a_list_forgotten_halfway_is_read_in_one_piece(autojump_clock: MockClock) -> None:
    gone = httpx.Response(410, json=status(410, "Expired"))
    server = Server(
        lists=[listing(5, pod("a", 1), pod("gone", 1), continued="next"), gone, listing(9, pod("a", 1), pod("b", 8))]
    )
    async with following(server) as consumer:
        batch = consumer.batches[0]
        assert ([listed.name for listed in batch.objects], batch.resource_version) == (["a", "b"], "9")
    assert "limit" not in server.asked[2][1]


async def test_a_watch_that_ends_is_resumed_without_a_list_or_a_pause(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(1)], watches=[watching(line("ADDED", pod("a", 7)), 5.0, bookmark(20), 1.0)])
    async with following(server) as consumer:
        await trio.sleep(10)
    assert server.verbs == ["list", "watch", "watch"]
    assert server.asked[2][1]["resourceVersion"] == "20"
    assert server.asked[2][2] - server.asked[1][2] == pytest.approx(6.0)
    assert consumer.trouble == []


async def test_after_410_the_difference_to_a_new_list_is_delivered(autojump_clock: MockClock) -> None:
    server = Server(
        lists=[
            listing(10, pod("same", 1), pod("changed", 2), pod("gone", 3), pod("reborn", 4, uid="old")),
            listing(50, pod("same", 1), pod("changed", 40), pod("new", 41), pod("reborn", 42, uid="new")),
        ],
        watches=[watching(60.0, line("ERROR", status(410, "Expired", "too old resource version: 10 (45)")))],
    )
    async with following(server) as consumer:
        await trio.sleep(100)
    assert consumer.changes == [
        ("DELETED", "gone@3", None),
        ("DELETED", "reborn@4", None),
        ("MODIFIED", "changed@2", "changed@40"),
        ("ADDED", None, "new@41"),
        ("ADDED", None, "reborn@42"),
    ]
    assert consumer.batches[1].relisted
    assert server.verbs == ["list", "watch", "list", "watch"]
    assert consumer.trouble == []


async def test_a_410_answer_to_a_watch_leads_to_a_list_too(autojump_clock: MockClock) -> None:
    gone = httpx.Response(410, json=status(410, "Expired"))
    server = Server(lists=[listing(10), listing(20), listing(30, pod("a", 25))], watches=[gone, gone])
    async with following(server) as consumer:
        await trio.sleep(10)
    assert consumer.changes == [("ADDED", None, "a@25")]
    assert server.verbs == ["list", "watch", "list", "watch", "list", "watch"]
    moments = [at for _verb, _query, at in server.asked]
    assert moments[2] == moments[1], "a server that was restarted after the list says so once"
    assert moments[4] - moments[3] >= 0.4, "410 after 410 must not become a storm of lists"


async def test_a_server_that_starts_again_after_the_list_is_listed_at_once(autojump_clock: MockClock) -> None:
    refused = httpx.Response(503, json=status(503, "ServiceUnavailable"))
    server = Server(
        lists=[listing(10), listing(20, pod("a", 15))],
        watches=[*[refused] * 3, httpx.Response(410, json=status(410, "Expired"))],
    )
    async with following(server) as consumer:
        await trio.sleep(30)
    assert consumer.changes == [("ADDED", None, "a@15")]
    moments = [at for _verb, _query, at in server.asked]
    assert moments[5] == moments[4]  # the pauses that the refusals had led to are over


async def test_what_came_before_an_error_is_delivered_first(autojump_clock: MockClock) -> None:
    text = line("ADDED", pod("a", 11)) + line("ERROR", status(500, "InternalError", "etcd is gone"))
    server = Server(lists=[listing(10), listing(20, pod("a", 11))], watches=[watching(text)])
    async with following(server) as consumer:
        await trio.sleep(10)
    assert consumer.changes == [("ADDED", None, "a@11")]
    assert [str(trouble) for trouble in consumer.trouble] == ["etcd is gone"]
    assert server.verbs == ["list", "watch", "list", "watch"]


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("connection refused"),
        httpx.Response(429, json=status(429, "TooManyRequests")),
        httpx.Response(503, text="shutting down"),
    ],
    ids=["refused", "429", "503"],
)
async def test_after_an_outage_the_watch_resumes_from_its_last_version(
    autojump_clock: MockClock, failure: httpx.Response | Exception
) -> None:
    server = Server(
        lists=[listing(10)],
        watches=[failure, failure, failure, watching(line("ADDED", pod("a", 11)), FOREVER)],
    )
    async with following(server) as consumer:
        await trio.sleep(60)
    assert server.verbs == ["list"] + ["watch"] * 4
    assert {query["resourceVersion"] for _, query, _ in server.asked[1:]} == {"10"}
    times = [time for _, _, time in server.asked[1:]]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert all(0.2 <= pause <= 1.0 for pause in pauses), "what lasts for seconds leads to no long pause"
    assert len(consumer.trouble) == 3
    assert consumer.changes == [("ADDED", None, "a@11")]


@pytest.mark.parametrize(
    ("failure", "longest"),
    [
        (httpx.ConnectError("connection refused"), 20.0),
        (httpx.Response(429, json=status(429, "TooManyRequests")), 10.5),
        (httpx.Response(503, text="shutting down"), 10.5),
        (httpx.Response(403, json=status(403, "Forbidden")), 30.5),
    ],
    ids=["refused", "429", "503", "403"],
)
async def test_a_server_that_goes_on_refusing_is_asked_ever_less(
    autojump_clock: MockClock, failure: httpx.Response | Exception, longest: float
) -> None:
    server = Server(lists=[listing(10)], watches=[failure] * 10_000)
    async with following(server):
        await trio.sleep(1200)
    times = [time for _, _, time in server.asked[1:]]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert max(pauses[:3]) <= 2.5
    assert longest / 3 <= max(pauses) <= longest
    assert all(pause >= longest / 3 for pause in pauses[-5:])


async def test_a_watch_waits_as_long_as_the_response_says(autojump_clock: MockClock) -> None:
    busy = httpx.Response(429, json=status(429, "TooManyRequests"), headers={"Retry-After": "7"})
    server = Server(lists=[listing(10)], watches=[busy])
    async with following(server):
        await trio.sleep(60)
    assert 7.0 <= server.asked[2][2] - server.asked[1][2] <= 8.0


async def test_a_watch_that_opens_ends_the_pauses_of_other_kinds(autojump_clock: MockClock) -> None:
    forbidden = httpx.Response(403, json=status(403, "Forbidden"))
    pods = Server(lists=[listing(10)], watches=[forbidden] * 50)
    nodes = Server(lists=[listing(10)], watches=[watching(100.0), watching(FOREVER)])
    async with following(pods) as consumer, following(nodes, NODE_KIND, reachability=consumer.reachability):
        await trio.sleep(99.0)
        due = pods.asked[-1][2]
        asked = len(pods.asked)
        await trio.sleep(2.0)
    assert len(pods.asked) > asked
    assert pods.asked[asked][2] == pytest.approx(100.0, abs=0.3)
    assert due < 99.0


async def test_a_stream_that_breaks_is_resumed_after_the_last_event(autojump_clock: MockClock) -> None:
    server = Server(
        lists=[listing(10)], watches=[watching(line("ADDED", pod("a", 11)), b'{"type":"ADD', httpx.ReadError("reset"))]
    )
    async with following(server) as consumer:
        await trio.sleep(10)
    assert [query["resourceVersion"] for verb, query, _ in server.asked if verb == "watch"] == ["10", "11"]
    assert "reset" in str(consumer.trouble[0])


async def test_a_first_list_is_tried_until_it_works(autojump_clock: MockClock) -> None:
    forbidden = httpx.Response(403, json=status(403, "Forbidden", "pods is forbidden"))
    server = Server(lists=[forbidden, forbidden, listing(3, pod("a", 1))])
    async with following(server) as consumer:
        assert [listed.name for listed in consumer.batches[0].objects] == ["a"]
        assert [str(trouble) for trouble in consumer.trouble] == ["pods is forbidden"] * 2


async def test_a_watch_that_gets_no_more_bookmarks_is_begun_again(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(10)], watches=[watching(60.0, bookmark(12), 60.0, bookmark(13), FOREVER)])
    async with following(server) as consumer:
        await trio.sleep(230)
    assert [query["resourceVersion"] for verb, query, _ in server.asked if verb == "watch"] == ["10", "13"]
    assert server.asked[2][2] - server.asked[1][2] == pytest.approx(221, abs=1.5)
    assert "silent for 100 s" in str(consumer.trouble[0])


async def test_a_watch_that_falls_silent_after_its_first_bookmark_is_begun_again(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(10)], watches=[watching(60.0, bookmark(12), FOREVER)])
    async with following(server) as consumer:
        await trio.sleep(170)
    assert [query["resourceVersion"] for verb, query, _ in server.asked if verb == "watch"] == ["10", "12"]
    assert server.asked[2][2] - server.asked[1][2] == pytest.approx(161, abs=1.5)
    assert "silent for 100 s" in str(consumer.trouble[0])


async def test_a_silent_watch_is_information_and_no_error(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = Server(lists=[listing(10)], watches=[watching(60.0, bookmark(12), FOREVER)])
    async with connect(SETTINGS, qps=-1, transport=server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(partial(list_and_watch, client, POD_KIND, lambda _: None, random=Random(1)))
        await trio.sleep(170)
        nursery.cancel_scope.cancel()
    said = [(record.levelname, record.getMessage()) for record in caplog.records if "silent" in record.getMessage()]
    assert said == [("INFO", "The watch of pods has been silent for 100 s; connecting again")]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_watch_without_any_bookmark_is_left_alone(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(10)], watches=[watching(299.0), watching(FOREVER)])
    async with following(server) as consumer:
        await trio.sleep(400)
    assert server.verbs == ["list", "watch", "watch"]
    assert consumer.trouble == []


async def test_a_watch_past_its_timeout_is_closed_despite_events(autojump_clock: MockClock) -> None:
    chatter: list[bytes | float] = []
    for number in range(100):
        chatter += [60.0, bookmark(100 + number)]
    server = Server(lists=[listing(10)], watches=[watching(*chatter)])
    async with following(server):
        await trio.sleep(700)
    asked_for = int(server.asked[1][1]["timeoutSeconds"])
    assert server.asked[2][2] - server.asked[1][2] == pytest.approx(asked_for + 31, abs=1.5)


async def test_a_line_without_an_end_ends_the_watch(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_LINE_BYTES", 1_000)
    whole = line("ADDED", pod("a", 11, note="x" * 600))
    server = Server(lists=[listing(10)], watches=[watching(whole[:300], whole[300:], *[b"y" * 300] * 10, FOREVER)])
    async with following(server) as consumer:
        await trio.sleep(60)
    assert consumer.changes == [("ADDED", None, "a@11")]
    assert [str(trouble) for trouble in consumer.trouble] == [
        "the watch of pods sent a line of more than 1000 bytes; connecting again"
    ]
    assert [query["resourceVersion"] for verb, query, _ in server.asked if verb == "watch"] == ["10", "11"]


async def test_very_short_watches_are_not_repeated_at_once(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(10)], watches=[watching(), watching()])
    async with following(server) as consumer:
        await trio.sleep(30)
    assert str(consumer.trouble[0]) == (
        "very short watch: pods: Unexpected watch close - watch lasted less than a second and no items received"
    )
    assert server.asked[2][2] - server.asked[1][2] >= 0.4


@pytest.mark.parametrize("body", [b"{}", b"\n" * 9, bookmark(10)], ids=["no line", "empty lines", "nothing new"])
async def test_watches_without_progress_are_not_repeated_at_once(autojump_clock: MockClock, body: bytes) -> None:
    server = Server(lists=[listing(10)], watches=[watching(body), watching(body)])
    async with following(server) as consumer:
        await trio.sleep(30)
    assert [str(trouble)[:22] for trouble in consumer.trouble] == ["very short watch: pods"] * 2
    assert all(later - earlier >= 0.4 for (*_, earlier), (*_, later) in pairwise(server.asked[1:]))


@pytest.mark.parametrize(
    ("junk", "problem"),
    [
        (b"x\n" * 1000, "JSON is malformed: invalid character (byte 0)"),
        (b'{"type": null, "object": null}\n', "Expected str, got null - at type"),
        (line("DROPPED", pod("b", 12)), 'the type "DROPPED"'),
    ],
    ids=["no JSON", "no type", "unknown type"],
)
async def test_a_line_that_is_no_event_ends_the_watch_and_leads_to_a_list(
    autojump_clock: MockClock, junk: bytes, problem: str
) -> None:
    server = Server(
        lists=[listing(10), listing(20, pod("a", 11), pod("c", 13))],
        watches=[watching(line("ADDED", pod("a", 11)) + junk + line("ADDED", pod("c", 13)), FOREVER)],
    )
    async with following(server) as consumer:
        await trio.sleep(30)
    assert [str(trouble) for trouble in consumer.trouble] == [
        f"the watch of pods sent a line that is no event: {problem}"
    ]
    assert consumer.changes == [("ADDED", None, "a@11"), ("ADDED", None, "c@13")]
    assert server.verbs == ["list", "watch", "list", "watch"]
    assert server.asked[2][2] - server.asked[1][2] >= 0.4


async def test_resource_versions_longer_than_any_number_are_compared(autojump_clock: MockClock) -> None:
    newest, oldest = line("BOOKMARK", {"metadata": {"resourceVersion": "9" * 5000}}), bookmark(49)
    server = Server(lists=[listing(10, pod("a", 9)), listing(50)], watches=[watching(newest, oldest, FOREVER)])
    async with following(server) as consumer:
        await trio.sleep(100)
    assert consumer.changes == [("DELETED", "a@9", None)]


async def test_a_server_restored_from_a_backup_is_listed_again(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(100, pod("a", 99)), listing(50)], watches=[watching(60.0, bookmark(49), FOREVER)])
    async with following(server) as consumer:
        await trio.sleep(100)
    assert consumer.changes == [("DELETED", "a@99", None)]


async def test_a_malformed_object_is_left_out_of_a_list_and_named(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(10, pod("good", 1), pod("bad", 2, nodeName=5))])
    async with following(server) as consumer:
        assert [listed.name for listed in consumer.batches[0].objects] == ["good"]
        assert [str(trouble) for trouble in consumer.trouble] == [
            "pods d/bad left out: Expected str, got int - at spec.nodeName"
        ]


async def test_a_malformed_object_in_a_watch_affects_no_other_object(autojump_clock: MockClock) -> None:
    events = (
        line("ADDED", pod("a", 11))
        + line("MODIFIED", pod("a", 12, nodeName=5))
        + line("ADDED", pod("b", 13))
        + line("DELETED", pod("a", 14, nodeName=5))
    )
    server = Server(lists=[listing(10)], watches=[watching(events, 5.0)])
    async with following(server) as consumer:
        await trio.sleep(10)
    assert consumer.changes == [("ADDED", None, "a@11"), ("ADDED", None, "b@13"), ("DELETED", "a@11", None)]
    assert ["d/a" in str(trouble) for trouble in consumer.trouble] == [True, True]
    assert server.asked[2][1]["resourceVersion"] == "14"


async def test_an_object_that_became_malformed_is_not_deleted(autojump_clock: MockClock) -> None:
    server = Server(
        lists=[listing(10, pod("a", 1)), listing(20, pod("a", 15, nodeName=5)), listing(30)],
        watches=[watching(60.0, line("ERROR", status(410, "Expired"))) for _ in range(2)],
    )
    async with following(server) as consumer:
        await trio.sleep(70)
        assert consumer.changes == []
        await trio.sleep(70)
        assert consumer.changes == [("DELETED", "a@1", None)]


async def test_an_error_is_seen_even_if_a_status_could_pass_for_the_kind(autojump_clock: MockClock) -> None:
    server = Server(
        lists=[listing(10), listing(20)], watches=[watching(60.0, line("ERROR", status(410, "Expired")), FOREVER)]
    )
    async with following(server, LEASE_KIND):
        await trio.sleep(100)
    assert server.verbs == ["list", "watch", "list", "watch"]


async def test_objects_are_transformed_before_they_are_delivered(autojump_clock: MockClock) -> None:
    versions: list[tuple[str, str]] = []

    def shared(seen: Pod, known: Pod | None) -> Pod:
        before = "none" if known is None else known.metadata.resource_version
        versions.append((before, f"{seen.name}@{seen.metadata.resource_version}"))
        return Pod(metadata=seen.metadata)

    kind = Kind(version="v1", plural="pods", namespaced=True, type=Pod, transform=shared)
    server = Server(
        lists=[listing(10, pod("a", 1, nodeName="n")), listing(20, pod("a", 12), pod("c", 15))],
        watches=[
            watching(
                60.0,
                line("ADDED", pod("b", 11, nodeName="n"))
                + line("MODIFIED", pod("a", 12))
                + line("DELETED", pod("b", 13))
                + line("ERROR", status(410, "Expired")),
            ),
            watching(FOREVER),
        ],
    )
    async with following(server, kind) as consumer:
        await trio.sleep(70)
    assert consumer.batches[0].objects[0].node_name == ""
    assert consumer.batches[1].changes[0].new.node_name == ""
    assert versions == [
        ("none", "a@1"),
        ("none", "b@11"),
        ("1", "a@12"),
        ("11", "b@13"),
        ("12", "a@12"),
        ("none", "c@15"),
    ]


async def test_keep_raw_stores_the_json_of_each_object(autojump_clock: MockClock) -> None:
    seen: list[tuple[str, Any]] = []

    def keep(decoded: Pod, raw: bytes) -> Pod:
        seen.append((decoded.name, json.loads(raw)["spec"].get("hostname")))
        return decoded

    kind = Kind(version="v1", plural="pods", namespaced=True, type=Pod, keep_raw=keep)
    events = (
        line("ADDED", pod("c", 11, hostname="z"))
        + line("MODIFIED", pod("c", 12, nodeName=5))
        + line("DELETED", pod("a", 13))
        + line("ERROR", status(410, "Expired"))
    )
    server = Server(
        lists=[listing(10, pod("a", 1, hostname="x"), pod("bad", 2, nodeName=5)), listing(20)],
        watches=[watching(60.0, events), watching(FOREVER)],
    )
    async with following(server, kind) as consumer:
        await trio.sleep(70)
    assert seen == [("a", "x"), ("c", "z"), ("a", None)]
    assert consumer.changes == [("ADDED", None, "c@11"), ("DELETED", "a@1", "a@13"), ("DELETED", "c@11", None)]
    assert ["left out" in str(trouble) for trouble in consumer.trouble] == [True, True]


async def test_nodes_are_followed_without_a_selector(autojump_clock: MockClock) -> None:
    server = Server(lists=[listing(1)])
    async with following(server, NODE_KIND):
        await trio.testing.wait_all_tasks_blocked()
    assert all("fieldSelector" not in query for _, query, _ in server.asked)


async def test_a_watch_over_a_real_socket_delivers(start_server: StartServer) -> None:
    async def serve(exchange: Exchange) -> None:
        if "watch=true" not in exchange.request.target:
            return await exchange.answer(json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode())
        event = line("ADDED", pod("a", 2))
        await exchange.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event))
        await trio.sleep_forever()

    server = await start_server(serve, tls=True)
    delivered = trio.Event()
    seen: list[Any] = []

    def deliver(batch: Listed[Any] | Changes[Any]) -> None:
        seen.append(batch)
        if isinstance(batch, Changes):
            delivered.set()

    async with connect(server.settings) as client, trio.open_nursery() as nursery:
        await nursery.start(partial(list_and_watch, client, POD_KIND, deliver, random=Random(1)))
        await delivered.wait()
        nursery.cancel_scope.cancel()
    assert seen[1].changes[0].new.name == "a"


async def test_an_error_that_goes_on_is_logged_every_half_minute(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    refused = httpx.Response(503, json=status(503, "ServiceUnavailable", "starting"))
    other = httpx.Response(500, json=status(500, "InternalError", "etcd is gone"))
    server = Server(lists=[listing(10)], watches=[*[refused] * 20, other, *[refused] * 1000])
    async with connect(SETTINGS, qps=-1, transport=server) as client, trio.open_nursery() as nursery:
        nursery.start_soon(partial(list_and_watch, client, POD_KIND, lambda _: None, random=Random(1)))
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    texts = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "Failed to watch pods: etcd is gone" in texts
    assert 4 <= len(texts) <= 7
