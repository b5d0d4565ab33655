"""The live page of a recording: what it shows of which time."""

import json
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from recorded_clusters import record

from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.messages import Request, Response
from trio_sched.daemon.serving.pages.live.recorded_pages import RecordedPages
from trio_sched.daemon.serving.pages.routes import Routes
from trio_sched.recording.folder import segment_paths
from trio_sched.recording.records import Missed
from trio_sched.recording.segments import NotARecording
from trio_sched.replaying.recorded_states import RecordedStates, recorded_pages
from trio_sched.replaying.replay import ReplayPlan
from trio_sched.replaying.replayed_cluster import BadRecording
from trio_sched.simulator import EPOCH_OF_TESTS
from trio_sched.testing import VirtualCluster, pod
from trio_sched.testing.cluster_settings import cluster_settings


async def pods_that_come_and_go(cluster: VirtualCluster) -> None:
    for number in range(3):
        await cluster.create(pod(f"p{number}", cpu="1"))
    await trio.sleep(30)
    await cluster.create(pod("huge", cpu="500"))
    await trio.sleep(30)
    await cluster.delete(pod("p0"))


def shown(folder: Path) -> RecordedPages:
    plan = ReplayPlan(
        folder=folder, settings_of=lambda one: cluster_settings(one.configuration, DEFAULT_GATES, [], False)
    )
    return recorded_pages(plan)[0]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> RecordedPages:
    folder = tmp_path_factory.mktemp("recordings") / "shop"
    record(folder, pods_that_come_and_go, nodes=2)
    return shown(folder)


def ask(pages: RecordedPages, target: str) -> Response:
    path, _, query = target.partition("?")
    request = Request(method="GET", path=path, target=target, query=query, headers=[])
    return trio.run(Routes(exact=pages.handlers()), request)


def state(pages: RecordedPages, time: float) -> Any:
    response = ask(pages, f"/ui/frame?time={time}")
    assert response.status == 200
    return json.loads(response.body)


def test_the_cluster_is_as_it_was_at_each_time(pages: RecordedPages) -> None:
    begin, end = pages.frames.begin, pages.frames.end
    assert end - begin >= 60
    placed, refused, last = (state(pages, time) for time in (begin + 20, begin + 45, end))
    assert placed["time"] == begin + 20
    assert placed["timeline"] == {"begin": begin, "end": end}
    assert placed["source"] == {"kind": "recording", "name": "recording shop"}
    assert [one["summary"]["pods"][0] for one in (placed, refused, last)] == [3, 3, 2]
    assert [one["pending"].get("name", []) for one in (placed, refused)] == [[], ["huge"]]
    assert [cause["text"] for cause in refused["causes"]] == ["Insufficient cpu"]
    assert placed["nodes"]["name"] == ["node-1", "node-2"]
    assert sum(last["nodes"]["pods"]) == 2
    assert last["summary"]["leader"] is None


def test_the_stream_is_the_last_state_alone(pages: RecordedPages) -> None:
    async def read() -> bytes:
        response = await Routes(exact=pages.handlers())(
            Request(method="GET", path="/ui/stream", target="/ui/stream", query="", headers=[])
        )
        assert response.stream is not None
        return b"".join([piece async for piece in response.stream])

    text = trio.run(read).decode()
    event, data = text.removeprefix("retry: 2000\n\n").removesuffix("\n\n").split("\n")
    assert event == "event: snapshot"
    assert json.loads(data.removeprefix("data: ")) == state(pages, pages.frames.end)


def test_the_history_has_what_was_recorded(pages: RecordedPages) -> None:
    history = json.loads(ask(pages, "/ui/history").body)
    steps = [after - before for before, after in zip(history["seconds"], history["seconds"][1:], strict=False)]
    series = history["series"]
    assert all(seconds >= 10 for seconds in steps)
    assert {len(values) for values in series.values()} == {len(history["seconds"])}
    assert max(series["binds"]) > 0
    assert series["unschedulable"][-1] == 1
    assert set(series["bind_p50"]) == {None}


def test_details_are_those_of_the_time_that_is_shown_forward_and_back(pages: RecordedPages) -> None:
    begin, end = pages.frames.begin, pages.frames.end
    counts = []
    for time in (begin + 20, end, begin + 45):
        nodes = [json.loads(ask(pages, f"/ui/node?name=node-{number}&time={time}").body) for number in (1, 2)]
        counts.append(sum(len(one["pods"]) for one in nodes))
    assert counts == [3, 2, 3]
    found = [json.loads(ask(pages, f"/ui/pods?query=huge&time={time}").body)["pods"] for time in (begin + 20, end)]
    assert [[one["name"] for one in pods] for pods in found] == [[], ["huge"]]


def test_why_a_pod_was_pending_is_worked_out_for_that_time(pages: RecordedPages) -> None:
    begin, huge = pages.frames.begin, "/ui/pod?namespace=default&name=huge"
    assert ask(pages, f"{huge}&time={begin + 20}").status == 404
    pending = []
    for time in (begin + 45, begin + 45, pages.frames.end, begin + 40):
        explanation = json.loads(ask(pages, f"{huge}&time={time}").body)
        assert explanation["cause"]["reasons"] == ["InsufficientCPU"]
        assert explanation["waiting"]["attempts"] == 1
        pending.append(explanation["waiting"]["pendingSeconds"])
    assert pending[0] == pending[1] == pytest.approx(pending[3] + 5, abs=0.01)
    assert pending[0] < pending[2]
    placed = json.loads(ask(pages, f"/ui/pod?namespace=default&name=p0&time={begin + 20}").body)
    assert placed["node"] in ("node-1", "node-2")


async def test_a_question_that_nobody_waits_for_any_more_holds_up_no_other(tmp_path: Path) -> None:
    await trio.to_thread.run_sync(partial(record, tmp_path, pods_that_come_and_go, nodes=2))
    pages = await trio.to_thread.run_sync(shown, tmp_path)
    past, begin = pages.past, pages.frames.begin
    is_asked, goes_on, ended = threading.Event(), threading.Event(), []

    def slowly(_assembly: Assembly) -> None:
        is_asked.set()
        goes_on.wait(5)
        ended.append(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(past.look, begin + 20, slowly)
        await trio.to_thread.run_sync(is_asked.wait)
        nursery.cancel_scope.cancel()
    assert await past.look(begin + 20, lambda assembly: len(assembly.scheduler.cache)) == 3
    assert not ended
    goes_on.set()
    assert await past.look(begin + 45, lambda assembly: len(assembly.scheduler.queue.unschedulable)) == 1


def test_details_of_a_recording_that_is_gone_are_an_error_that_says_so(tmp_path: Path) -> None:
    record(tmp_path, pods_that_come_and_go, nodes=2)
    gone = shown(tmp_path)
    for path in segment_paths(tmp_path):
        path.unlink()
    response = ask(gone, "/ui/node?name=node-1")
    assert response.status == 503
    assert b"cannot be replayed any more" in response.body
    assert ask(gone, f"/ui/frame?time={gone.frames.end}").status == 200


@pytest.mark.parametrize(
    ("target", "status", "text"),
    [
        ("/ui/frame?time=1", 404, "the recording begins at"),
        ("/ui/frame?time=nan", 400, "give seconds since 1970"),
        ("/ui/frame?time=x", 400, "give seconds since 1970"),
        ("/ui/frame", 400, "give seconds since 1970"),
        ("/ui/node?name=node-9", 404, "no such node at that time"),
        ("/ui/node?name=node-1&time=1", 404, "the recording begins at"),
        ("/ui/pod?namespace=default&name=p0", 404, "no such pod at that time"),
    ],
)
def test_what_there_is_not_is_an_error(pages: RecordedPages, target: str, status: int, text: str) -> None:
    response = ask(pages, target)
    assert response.status == status
    assert text in json.loads(response.body)["error"]


def test_a_scheduler_that_was_started_again_is_shown_as_it_was_before_until_then(tmp_path: Path) -> None:
    record(tmp_path, pods_that_come_and_go, nodes=2)
    record(tmp_path, pods_that_come_and_go, nodes=3, begins=EPOCH_OF_TESTS + timedelta(minutes=5))
    pages = shown(tmp_path)
    again = EPOCH_OF_TESTS.timestamp() + 300
    shown_at = [state(pages, time) for time in (again - 150, again - 1, again + 20, pages.frames.end)]
    assert [one["summary"]["nodes"] for one in shown_at] == [2, 2, 3, 3]
    assert [one["summary"]["pods"][0] for one in shown_at] == [2, 2, 3, 2]


def test_a_recording_that_is_cut_off_is_shown_up_to_the_cut(tmp_path: Path) -> None:
    record(tmp_path, pods_that_come_and_go, nodes=2)
    whole = shown(tmp_path).frames.end
    (segment,) = segment_paths(tmp_path)
    content = segment.read_bytes()
    segment.write_bytes(content[: len(content) * 2 // 3])
    assert shown(tmp_path).frames.end <= whole
    segment.write_bytes(content[: len(content) // 100])
    with pytest.raises(NotARecording, match="has nothing to show"):
        shown(tmp_path)


def test_a_record_of_no_time_is_an_error(tmp_path: Path) -> None:
    states: Any = RecordedStates(tmp_path)
    for time in (-1.0, 1e300, float("nan")):
        with pytest.raises(BadRecording, match="a time that cannot be shown"):
            states.before(None, Missed(0.0, 1), time)
