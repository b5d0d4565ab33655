"""Makes spans of attempts: one of the scheduling cycle, in it one of the binding cycle, in both one for each hook."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import trio
from attrs import define, field
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace import Status as SpanStatus

from trio_sched.daemon.writes.cut_text import cut_text
from trio_sched.engine.hooks.attempt_trace import AttemptTrace
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.status_labels import ERROR, SUCCESS
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status

SCHEDULING_CYCLE: Final = "scheduling cycle"
BINDING_CYCLE: Final = "binding cycle"
WAIT_ON_PERMIT: Final = "wait on permit"

NAMESPACE: Final = "k8s.namespace.name"
POD: Final = "k8s.pod.name"
POD_UID: Final = "k8s.pod.uid"
NODE: Final = "k8s.node.name"
SCHEDULER_NAME: Final = "trio_sched.scheduler_name"
ATTEMPT: Final = "trio_sched.attempt"
RESULT: Final = "trio_sched.result"
MESSAGE: Final = "trio_sched.message"
EVALUATED_NODES: Final = "trio_sched.evaluated_nodes"
FEASIBLE_NODES: Final = "trio_sched.feasible_nodes"
PLUGIN: Final = "trio_sched.plugin"
HOOK: Final = "trio_sched.hook"
STATUS: Final = "trio_sched.status"
CALLS: Final = "trio_sched.calls"
BUSY_SECONDS: Final = "trio_sched.busy_seconds"

_MAX_MESSAGE: Final = 1024
_SECOND: Final = 1_000_000_000


@define(eq=False)
class TracedAttempts:
    """Begins the traces of the attempts that the tracer's sampler chooses."""

    tracer: Tracer
    wall_clock: Callable[[], datetime]

    def begin(self, pod: Pod, attempt: int, last: AttemptTrace | None) -> AttemptTrace | None:
        """See `trio_sched.engine.hooks.attempt_trace.AttemptTracer`."""
        wall_ns = round(self.wall_clock().timestamp() * 1e6) * 1000
        attributes: dict[str, str | int] = {
            NAMESPACE: _text(pod.namespace),
            POD: _text(pod.name),
            POD_UID: _text(pod.uid),
            SCHEDULER_NAME: _text(pod.scheduler_name),
            ATTEMPT: attempt,
        }
        span = self.tracer.start_span(
            SCHEDULING_CYCLE,
            context=Context(),  # a trace of its own, whatever a plugin has made the current span
            attributes=attributes,
            links=[Link(last.first)] if isinstance(last, TracedAttempt) else (),
            start_time=wall_ns,
        )
        if not span.is_recording():
            return None
        return TracedAttempt(self.tracer, span, span.get_span_context(), attributes, wall_ns, trio.current_time())


@define(eq=False)
class _Calls:
    """The calls of one hook in one cycle."""

    began: int
    ended: int
    seconds: float
    status: str
    count: int = 1

    def add(self, began: int, ended: int, seconds: float, status: str) -> None:
        """Another call; for hooks that are called per node. They succeeded if any of them did, as one for all does."""
        self.began, self.ended = min(began, self.began), max(ended, self.ended)
        self.seconds += seconds
        self.count += 1
        if self.status != ERROR and (self.status != SUCCESS or status == ERROR):
            self.status = status


@define(eq=False)
class TracedAttempt:
    """One attempt; see `trio_sched.engine.hooks.attempt_trace.AttemptTrace`.

    Times are those of trio's clock, counted from the beginning of the attempt by the wall clock.
    """

    _tracer: Tracer
    _span: Span
    """The span of the cycle under way."""
    first: SpanContext
    """The context of the scheduling cycle."""
    _attributes: dict[str, str | int]
    _wall_ns: int
    _began: float
    _cycle_began_ns: int = field(init=False)
    _calls: dict[tuple[str, str], _Calls] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._cycle_began_ns = self._wall_ns

    def hook_called(self, hook: BoundHook, status: str, seconds: float) -> None:
        """See `AttemptTrace`."""
        self._add((hook.plugin, hook.hook), status, seconds)

    def waited_on_permit(self, status: str, seconds: float) -> None:
        """See `AttemptTrace`."""
        self._add(("", WAIT_ON_PERMIT), status, seconds)

    def placed(self, node_name: str, *, evaluated_nodes: int, feasible_nodes: int) -> None:
        """See `AttemptTrace`."""
        self._attributes[NODE] = _text(node_name)
        self._span.set_attributes({EVALUATED_NODES: evaluated_nodes, FEASIBLE_NODES: feasible_nodes})
        now = self._end_cycle("scheduled")
        within = set_span_in_context(self._span, Context())
        self._span = self._tracer.start_span(BINDING_CYCLE, context=within, attributes=self._attributes, start_time=now)
        self._cycle_began_ns = now

    def bound(self) -> None:
        """See `AttemptTrace`."""
        self._end_cycle("scheduled")

    def failed(self, status: Status) -> None:
        """See `AttemptTrace`."""
        if not self._span.is_recording():
            return
        message = cut_text(_text(status.message), _MAX_MESSAGE)
        self._span.set_attribute(MESSAGE, message)
        if not status.is_rejected:
            self._span.set_status(SpanStatus(StatusCode.ERROR, message))
        self._end_cycle("unschedulable" if status.is_rejected else "error")

    def given_up(self) -> None:
        """See `AttemptTrace`."""
        self._end_cycle("given up")

    def _add(self, key: tuple[str, str], status: str, seconds: float) -> None:
        ended = self._now_ns()
        # A clock of tests can stand still while hooks compute.
        began = max(self._cycle_began_ns, ended - round(seconds * _SECOND))
        calls = self._calls.get(key)
        if calls is None:
            self._calls[key] = _Calls(began, ended, seconds, status)
        else:
            calls.add(began, ended, seconds, status)

    def _end_cycle(self, result: str) -> int:
        now = self._now_ns()
        calls, self._calls = self._calls, {}
        if not self._span.is_recording():
            return now
        self._span.set_attributes({**self._attributes, RESULT: result})
        within = set_span_in_context(self._span, Context())
        for (plugin, hook), one in calls.items():
            attributes: dict[str, str | int | float] = {HOOK: hook, STATUS: one.status, BUSY_SECONDS: one.seconds}
            if plugin:
                attributes[PLUGIN] = _text(plugin)
            if one.count > 1:
                attributes[CALLS] = one.count
            name = f"{_text(plugin)} {hook}" if plugin else hook
            span = self._tracer.start_span(name, context=within, attributes=attributes, start_time=one.began)
            if one.status == ERROR:
                span.set_status(SpanStatus(StatusCode.ERROR))
            span.end(one.ended)
        self._span.end(now)
        return now

    def _now_ns(self) -> int:
        return self._wall_ns + round((trio.current_time() - self._began) * _SECOND)


def _text(value: str) -> str:
    """*value* as what can be encoded: one text that cannot would cost the whole batch of spans."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
