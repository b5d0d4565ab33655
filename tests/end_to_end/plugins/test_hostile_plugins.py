"""Plugins that answer with anything, or raise anything: the process lives, other pods go on, and a text says why."""

from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from trio_sched.plugin_api import (
    SKIP,
    Action,
    Code,
    Input,
    PostFilterResult,
    PreFilterResult,
    PreFlight,
    Resource,
    Status,
    Verdicts,
    Wait,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster

Answer = Callable[[int], Any]
"""Makes a wrong answer for so many nodes."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class Impostor:
    """Claims to be whatever it is asked about, and fails when it is looked at."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("hands off")

    def __eq__(self, _other: object) -> bool:
        raise RuntimeError("do not compare")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


class UnreadableName(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Treacherous(Exception, metaclass=UnreadableName):
    """Ends the process when it is printed, and fails at whatever else is done with it."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("hands off")

    def __str__(self) -> str:
        raise SystemExit(5)

    def with_traceback(self, _traceback: object) -> Any:
        raise RuntimeError("no traceback")


class UnreadableStatus(Status):
    @property
    def code(self) -> Any:  # type: ignore[override]
        raise SystemExit(6)


class UncomparableName:
    def __hash__(self) -> int:
        return hash("node-1")

    def __eq__(self, _other: object) -> bool:
        raise RuntimeError("do not compare")


async def _coroutine() -> None: ...


def _raise(error: BaseException) -> Any:
    raise error


NOT_ANSWERS: dict[str, Answer] = {
    "False": lambda _count: False,
    "True": lambda _count: True,
    "a float": lambda _count: 0.5,
    "text": lambda _count: "yes",
    "a list": lambda count: [1] * count,
    "bools": lambda count: np.ones(count, dtype=np.bool_),
    "floats": lambda count: np.full(count, 0.5),
    "NaN": lambda count: np.full(count, np.nan),
    "objects": lambda count: np.array([None] * count, dtype=object),
    "too many": lambda count: np.zeros(count + 1, dtype=np.int64),
    "a matrix": lambda count: np.zeros((count, 1), dtype=np.int64),
    "float codes": lambda count: Verdicts(np.zeros(count, dtype=np.float64), lambda _code: SKIP),  # type: ignore[arg-type]
    "too few codes": lambda count: Verdicts(np.ones(count - 1, dtype=np.bool_), lambda _code: unschedulable("no")),
    "listed codes": lambda count: Verdicts([1] * count, lambda _code: unschedulable("no")),  # type: ignore[arg-type]
    "explained by text": lambda count: Verdicts(np.ones(count, dtype=np.int64), lambda _code: "no"),  # type: ignore[arg-type,return-value]
    "explained by nothing": lambda count: Verdicts(np.ones(count, dtype=np.int64), None),  # type: ignore[arg-type]
    "a float code": lambda _count: Status(2.0),  # type: ignore[arg-type]
    "listed reasons": lambda _count: Status(Code.UNSCHEDULABLE, ["no"]),  # type: ignore[arg-type]
    "numbers as reasons": lambda _count: Status(Code.UNSCHEDULABLE, (1, 2)),  # type: ignore[arg-type]
    "text as error": lambda _count: Status(Code.ERROR, (), "broken"),  # type: ignore[arg-type]
    "an error without text": lambda _count: Status(Code.ERROR, (), Unprintable()),
    "listed names": lambda _count: PreFilterResult(["node-1"]),  # type: ignore[arg-type]
    "a wait for text": lambda _count: Wait("long"),  # type: ignore[arg-type]
    "a wait for NaN": lambda _count: Wait(float("nan")),
    "a number as nomination": lambda _count: PostFilterResult(None, 5),  # type: ignore[arg-type]
    "text as status": lambda _count: PostFilterResult("no"),  # type: ignore[arg-type]
    "text as permission": lambda _count: PreFlight("yes"),  # type: ignore[arg-type]
    "a coroutine": lambda _count: _coroutine(),
    "a generator": lambda count: iter(range(count)),
    "an impostor": lambda _count: Impostor(),
    "an exception": lambda _count: _raise(KeyError("team")),
    "an exception without text": lambda _count: _raise(Unprintable()),
    "recursion": lambda count: _recursion(count),
    "a group of exceptions": lambda _count: _raise(ExceptionGroup("several", [KeyError("team")])),
    "an exit": lambda _count: _raise(SystemExit(3)),
    "a hollow status": lambda _count: Status.__new__(Status),
    "hollow verdicts": lambda _count: Verdicts.__new__(Verdicts),
    "a hollow pre_filter result": lambda _count: PreFilterResult.__new__(PreFilterResult),
    "a hollow post_filter result": lambda _count: PostFilterResult.__new__(PostFilterResult),
    "a hollow wait": lambda _count: Wait.__new__(Wait),
    "a hollow permission": lambda _count: PreFlight.__new__(PreFlight),
    "a status that cannot be read": lambda _count: UnreadableStatus(Code.UNSCHEDULABLE),
    "may_fail for each node": lambda count: Verdicts(
        np.ones(count, dtype=np.bool_),
        lambda _code: unschedulable("no"),
        may_fail=np.ones(2, dtype=np.bool_),  # type: ignore[arg-type]
    ),
    "names that do not compare": lambda _count: PreFilterResult(frozenset([UncomparableName()])),  # type: ignore[list-item]
    "a nomination that cannot be sent": lambda _count: PostFilterResult(None, "\ud800"),
    "an exception with a lone surrogate": lambda _count: _raise(ValueError("\udcff")),
    "an exception that fails at everything": lambda _count: _raise(Treacherous()),
    "an exception with a long text": lambda _count: _raise(ValueError("x" * 1_000_000)),
    "an exception group with an exit": lambda _count: _raise(BaseExceptionGroup("several", [SystemExit(4)])),
    "asyncio's cancellation": lambda _count: _raise(CancelledError()),
}


def _recursion(count: int) -> Any:
    return _recursion(count + 1)


GOOD: dict[str, Answer] = {
    "pre_enqueue": lambda _count: None,
    "queue_sort": lambda _count: (0, 0.0),
    "sign": lambda _count: (),
    "pre_filter": lambda _count: None,
    "filter": lambda count: Verdicts.where(np.ones(count, dtype=np.bool_), unschedulable("no")),
    "filter_node": lambda _count: None,
    "post_filter": lambda _count: None,
    "pre_score": lambda _count: None,
    "score": lambda count: np.arange(count, dtype=np.int64),
    "score_node": lambda _count: 1,
    "normalize_score": lambda count: np.zeros(count, dtype=np.int64),
    "reserve": lambda _count: None,
    "permit": lambda _count: None,
    "pre_bind_pre_flight": lambda _count: PreFlight(),
    "pre_bind": lambda _count: None,
    "bind": lambda _count: SKIP,
    "post_bind": lambda _count: None,
}
"""What each hook answers for all other pods."""

HARMLESS = ("queue_sort", "sign", "post_bind")
"""Hooks whose failure is reported, but does not keep the pod from being scheduled."""
AWAITED = ("post_filter", "pre_bind", "bind", "post_bind")
"""Hooks that may return coroutines."""


def hostile(hook: str) -> type[Any]:
    """A plugin that gives the answer ``NOT_ANSWERS[i]`` at *hook* for the pod ``unlucky-i``; for others a good one."""

    def respond(subject: Any, sized: Any = ()) -> Any:
        kind, _, number = subject.name.partition("-")
        answer = list(NOT_ANSWERS.values())[int(number)] if kind == "unlucky" else GOOD[hook]
        return answer(len(sized))

    functions: dict[str, Callable[..., Any]] = {
        "queue_sort": lambda self, queued: respond(queued.pod),
        "normalize_score": lambda self, pod, scores: respond(pod, scores),
        **dict.fromkeys(("pre_filter", "filter", "pre_score", "score"), lambda self, pod, nodes: respond(pod, nodes)),
    }

    def named(name: str, function: Callable[..., Any]) -> Any:
        function.__name__ = name
        return hookimpl(function)

    members: dict[str, Any] = {"name": "Hostile", "__init__": lambda self, args, handle: None}
    members[hook] = named(hook, functions.get(hook, lambda self, pod: respond(pod)))
    if hook == "sign":
        members["depends_on"] = frozenset({Input.NODE})
        members["filter"] = named("filter", lambda self, pod, nodes: GOOD["filter"](len(nodes)))
    if hook == "normalize_score":
        members["score"] = named("score", lambda self, pod, nodes: GOOD["score"](len(nodes)))
    if hook == "pre_bind_pre_flight":
        members["pre_bind"] = named("pre_bind", lambda self, pod: None)
    return type("Hostile", (), members)


SORTED_BY_HOSTILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {enabled: [{name: Hostile}], disabled: [{name: "*"}]}
"""
BOUND_BY_HOSTILE_FIRST = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    bind: {enabled: [{name: Hostile}, {name: DefaultBinder}], disabled: [{name: "*"}]}
"""
CONFIGS = {"queue_sort": SORTED_BY_HOSTILE, "bind": BOUND_BY_HOSTILE_FIRST}


def is_fine(hook: str, answer: str) -> bool:
    """Whether *hook* may return that, odd as it is."""
    is_exception = "exception" in answer or answer in ("recursion", "an exit", "asyncio's cancellation")
    if hook == "post_bind":
        return not is_exception
    if answer == "a coroutine":
        return hook in AWAITED
    if is_exception:
        return False
    if hook == "sign":
        return _does_not_raise(lambda: hash(NOT_ANSWERS[answer](3)))
    if hook == "queue_sort":
        return answer in ("False", "True", "a float", "text", "a list")
    return False


def _does_not_raise(step: Callable[[], object]) -> bool:
    try:
        step()
    except Exception:
        return False
    return True


@pytest.mark.parametrize("hook", GOOD)
async def test_wrong_answers_cost_their_pods_and_nothing_else(
    hook: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    size = {"cpu": "999"} if hook == "post_filter" else {"cpu": "10m"}
    async with virtual_cluster(nodes=2, plugins=[hostile(hook)], config=CONFIGS.get(hook)) as cluster:
        await cluster.create(pod("before", cpu="10m"))
        for number in range(len(NOT_ANSWERS)):
            await cluster.create(pod(f"unlucky-{number}", **size))
        await cluster.create(pod("after", cpu="10m"))
        await trio.sleep(5)
        assert cluster.pod("before").node_name
        assert cluster.pod("after").node_name
        await trio.sleep(20)
        await cluster.create(pod("late", cpu="10m"))
        await trio.sleep(5)
        assert cluster.pod("late").node_name
        assert cluster.scheduler.running
        assert f"plugin Hostile failed at {hook}" in caplog.text
        for number, answer in enumerate(NOT_ANSWERS):
            name = f"unlucky-{number}"
            messages = [event.message for event in cluster.events("FailedScheduling", about=name)]
            is_bound = bool(cluster.pod(name).node_name)
            if hook in HARMLESS or is_fine(hook, answer):
                # A bind that answers success without binding is believed, as kube-scheduler believes it.
                assert is_bound == (hook not in ("post_filter", "bind")), answer
            else:
                assert not is_bound, answer
            if hook in HARMLESS or hook == "pre_enqueue" or is_fine(hook, answer):
                continue  # a gated pod has no event, the log says why
            assert messages, answer
            for message in messages:
                assert "Hostile" in message, answer
                # An Error that the plugin answers with itself is told in kube-scheduler's words alone.
                assert hook in message or answer == "an error without text", (answer, message)


@pytest.mark.parametrize("hook", AWAITED)
async def test_a_cancellation_of_the_plugins_own_is_its_failure(
    hook: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def stale(self: Any, pod: Any) -> Any:
        if pod.name != "unlucky":
            return GOOD[hook](0)
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as error:
                cancelled = error
        raise cancelled

    stale.__name__ = hook
    plugin = type("Hostile", (), {"name": "Hostile", "__init__": lambda *_args: None, hook: hookimpl(stale)})
    async with virtual_cluster(nodes=2, plugins=[plugin], config=CONFIGS.get(hook)) as cluster:
        await cluster.create(pod("unlucky", cpu="999" if hook == "post_filter" else "10m"))
        await trio.sleep(5)
        await cluster.create(pod("late", cpu="10m"))
        await trio.sleep(5)
        assert cluster.pod("late").node_name
        assert bool(cluster.pod("unlucky").node_name) == (hook == "post_bind")
        assert f"plugin Hostile failed at {hook}: {hook} raised Cancelled" in caplog.text


async def test_a_pre_bind_that_cancels_the_others_costs_its_pod(autojump_clock: MockClock) -> None:
    class Hostile:
        name = "Hostile"

        def __init__(self, args: None, handle: Any) -> None: ...

        @hookimpl
        async def pre_bind(self, pod: Any) -> None:
            nursery = trio.lowlevel.current_task().parent_nursery
            assert nursery is not None
            nursery.cancel_scope.cancel()
            await trio.sleep(1)

    async with virtual_cluster(nodes=1, plugins=[Hostile]) as cluster:
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(5)
        assert not cluster.pod("p").node_name
        event = cluster.events("FailedScheduling", about="p")[0]
        assert event.message == 'running PreBind plugin "Hostile": cancelled by a plugin'


def odd(function: Callable[..., Any]) -> Any:
    """Turns a hook into one that goes through all wrong answers, one after the other, for good."""
    calls: list[None] = []

    def answering(self: Any, pod: Any) -> Any:
        calls.append(None)
        return list(NOT_ANSWERS.values())[len(calls) % len(NOT_ANSWERS)](3)

    answering.__name__ = function.__name__
    return hookimpl(answering)


def _label(answer: str) -> str:
    return f"answer-{list(NOT_ANSWERS).index(answer)}"


def _labelled(pod: Any) -> Answer:
    return list(NOT_ANSWERS.values())[int(pod.labels["answer"].removeprefix("answer-"))]


async def test_an_unreserve_that_fails_is_reported_and_the_others_still_run(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Hostile:
        name = "Hostile"
        attempts = 0

        def __init__(self, args: None, handle: Any) -> None: ...

        @hookimpl
        def permit(self) -> Status | None:
            type(self).attempts += 1
            return unschedulable("not yet") if self.attempts <= len(NOT_ANSWERS) else None

        @odd
        def unreserve(self, pod: Any) -> None: ...

        @hookimpl
        def events_to_register(self) -> list[Any]:
            return [on(Resource.NODE, Action.ADD)]

    async with virtual_cluster(nodes=1, plugins=[Hostile]) as cluster:
        await cluster.create(pod("p", cpu=1))
        for number in range(2 * len(NOT_ANSWERS)):
            await trio.sleep(20)
            await cluster.create(node(f"new-{number}", cpu="10m"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"
        assert "plugin Hostile failed at unreserve: unreserve raised KeyError: 'team'" in caplog.text
        assert "a coroutine, which cannot be awaited here" in caplog.text


async def test_a_hint_that_answers_with_anything_lets_the_pod_be_tried(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    hinted: list[str] = []

    def hint(pod: Any, old: Any, new: Any) -> Any:
        hinted.append(pod.name)
        return _labelled(pod)(3)

    class Hostile:
        name = "Hostile"

        def __init__(self, args: None, handle: Any) -> None: ...

        @hookimpl
        def filter_node(self, node: Any) -> Status | None:
            return None if node.name == "good" else unschedulable("not good")

        @hookimpl
        def events_to_register(self) -> list[Any]:
            return [on(Resource.NODE, Action.ADD, hint)]

    async with virtual_cluster(nodes=1, plugins=[Hostile]) as cluster:
        for number, answer in enumerate(NOT_ANSWERS):
            await cluster.create(pod(f"p{number}", cpu="10m", labels={"answer": _label(answer)}))
        await trio.sleep(20)
        await cluster.create(node("good"))
        await trio.sleep(20)
        assert len(set(hinted)) == len(NOT_ANSWERS)
        assert set(cluster.placements().values()) == {"good"}
        assert "plugin Hostile failed at hint: hint returned " in caplog.text
        assert "; return Hint.QUEUE or Hint.SKIP" in caplog.text


@pytest.mark.parametrize("hook", ["add_pod", "remove_pod"])
async def test_extensions_that_answer_with_anything_cost_only_those_who_need_them(
    hook: str, autojump_clock: MockClock
) -> None:
    def wrong(self: Any, pod: Any) -> Any:
        return _labelled(pod)(3)

    wrong.__name__ = hook
    members = {
        "name": "Hostile",
        "__init__": lambda self, args, handle: None,
        "pre_filter": hookimpl(_named("pre_filter", lambda self: None)),
        hook: hookimpl(wrong),
    }
    hostile = type("Hostile", (), members)
    async with virtual_cluster(nodes=[node("n", cpu=2)], plugins=[hostile]) as cluster:
        await cluster.create(pod("victim", cpu=2, grace_seconds=1000))
        await trio.sleep(1)
        for number, answer in enumerate(NOT_ANSWERS):
            labels = {"answer": _label(answer)}
            await cluster.create(pod(f"high-{number}", cpu="10m", priority=100, labels=labels))
        await trio.sleep(30)
        await cluster.create(node("other"))
        await cluster.create(pod("bystander", cpu=1, labels={"answer": _label("False")}))
        await cluster.settle()
        assert cluster.scheduler.running
        assert cluster.pod("bystander").node_name == "other"
        if hook == "remove_pod":
            failed = [event.message for event in cluster.events("FailedScheduling", about="high-0")]
            assert any('running RemovePod on PreFilter plugin "Hostile": remove_pod returned' in one for one in failed)


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


async def test_what_a_plugin_leaves_in_the_cycle_state_cannot_end_the_process(autojump_clock: MockClock) -> None:
    class Uncloneable:
        def clone(self) -> Any:
            raise RuntimeError("one of a kind")

    class Hostile:
        name = "Hostile"

        def __init__(self, args: None, handle: Any) -> None: ...

        @hookimpl
        def pre_filter(self, pod: Any, state: Any) -> None:
            state.write("Hostile", Uncloneable())
            state.pods_to_activate = {"default/x": 5} if pod.name == "odd" else ["nonsense"]

        @hookimpl
        def add_pod(self) -> None: ...

        @hookimpl
        def remove_pod(self) -> None: ...

    async with virtual_cluster(nodes=[node("n", cpu=2)], plugins=[Hostile]) as cluster:
        await cluster.create(pod("odd", cpu=1))
        await cluster.create(pod("plain", cpu=1))
        await trio.sleep(1)
        await cluster.create(pod("high", cpu=2, priority=100))
        await trio.sleep(20)
        assert cluster.scheduler.running
        assert {cluster.pod(name).node_name for name in ("odd", "plain")} == {"n"}
        (event, *_) = cluster.events("FailedScheduling", about="high")
        assert "cloning the CycleState value 'Hostile': clone raised RuntimeError: one of a kind" in event.message
