"""``/debug/pprof``: the names that Go programs use, with what answers the same questions about a Python program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import trio
from attrs import define, field

from trio_sched.daemon.serving.limits import MAX_PROFILE_SECONDS
from trio_sched.daemon.serving.messages import HTML, NOSNIFF, PLAIN, Handler, Request, Response, refusal
from trio_sched.daemon.serving.pages.heap import heap_summary
from trio_sched.daemon.serving.pages.sampling import Sampler, thread_stacks
from trio_sched.daemon.serving.pages.task_tree import task_tree
from trio_sched.engine.hooks.hook_times import HookTimes

_ROOT = "/debug/pprof/"
_PROFILE_SECONDS, _TRACE_SECONDS = 30.0, 1.0
_MAX_DIGITS = 10
_ABOUT = {
    "goroutine": "the same as tasks",
    "heap": "objects in memory by type",
    "allocs": "the same as heap",
    "profile": "where time goes: collapsed stacks for flame graphs, sampled for ?seconds=N",
    "tasks": "every task with its stack, as the tree of nurseries",
    "threadcreate": "every thread with its stack",
    "block": "how long hooks of plugins kept the event loop busy, while that was measured",
    "mutex": "the same as block: there is one thread, so that nothing else waits",
    "trace": "the stacks that profile counts, one after the other, for ?seconds=N",
}


async def _threads() -> str:
    return thread_stacks()


@define(eq=False)
class Profiles:
    """The pages; one of each kind is made at a time."""

    hook_times: HookTimes
    _rendering: trio.Lock = field(init=False, factory=trio.Lock)
    _is_sampling: bool = field(init=False, default=False)

    def handlers(self) -> Mapping[str, Handler]:
        """By exact path."""
        return {
            _ROOT.rstrip("/"): _redirect,
            f"{_ROOT}profile": self._profile,
            f"{_ROOT}trace": self._trace,
            f"{_ROOT}symbol": _symbol,
        }

    def prefix_handlers(self) -> Mapping[str, Handler]:
        """By prefix."""
        return {_ROOT: self._page}

    async def _page(self, request: Request) -> Response:
        name = request.path.removeprefix(_ROOT)
        if not name:
            return _index()
        render = self._renderers().get(name)
        if render is None:
            return _failure("Unknown profile", 404)
        if request.parameter("seconds") and not _whole_number(request.parameter("seconds")):
            return _failure('invalid value for "seconds" - must be a positive integer', 400)
        async with self._rendering:
            return _profile_response(name, await render(), as_text=bool(_whole_number(request.parameter("debug"))))

    def _renderers(self) -> Mapping[str, Callable[[], Awaitable[str]]]:
        return {
            "tasks": task_tree,
            "goroutine": task_tree,
            "heap": heap_summary,
            "allocs": heap_summary,
            "threadcreate": _threads,
            "block": self._busy_hooks,
            "mutex": self._busy_hooks,
        }

    async def _busy_hooks(self) -> str:
        totals = sorted(self.hook_times.totals.items(), key=lambda entry: entry[1], reverse=True)
        rows = [f"{seconds:>12.6f} {calls:>10} {hook} of {plugin}" for (plugin, hook), (seconds, calls) in totals]
        return "\n".join([f"# {'seconds':>10} {'calls':>10} hook", *rows, ""])

    async def _profile(self, request: Request) -> Response:
        return await self._sample("profile", Sampler(), _whole_number(request.parameter("seconds")) or _PROFILE_SECONDS)

    async def _trace(self, request: Request) -> Response:
        seconds = _whole_number(request.parameter("seconds")) or _TRACE_SECONDS
        return await self._sample("trace", Sampler(in_order=True), seconds)

    async def _sample(self, name: str, sampler: Sampler, seconds: float) -> Response:
        if self._is_sampling:
            return _failure("Could not enable CPU profiling: cpu profiling already in use", 500)
        self._is_sampling = True
        try:
            return _profile_response(name, await sampler.run(min(seconds, MAX_PROFILE_SECONDS)), as_text=False)
        finally:
            self._is_sampling = False


def _whole_number(text: str) -> int:
    """The number in *text*; 0 if there is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _MAX_DIGITS else 0


def _profile_response(name: str, text: str, *, as_text: bool) -> Response:
    if as_text:
        return Response(headers=[PLAIN, NOSNIFF], body=text.encode("utf-8", "replace"))
    headers = [
        ("content-type", "application/octet-stream"),
        ("content-disposition", f'attachment; filename="{name}"'),
        NOSNIFF,
    ]
    return Response(headers=headers, body=text.encode("utf-8", "replace"))


def _failure(text: str, status: int) -> Response:
    response = refusal(text, status)
    response.headers.append(("x-go-pprof", "1"))
    return response


async def _redirect(request: Request) -> Response:
    response = Response(status=302, headers=[("location", _ROOT)])
    if request.method in ("GET", "HEAD"):
        response.headers.append(HTML)
    if request.method == "GET":
        response.body = f'<a href="{_ROOT}">Found</a>.\n\n'.encode()
    return response


async def _symbol(_request: Request) -> Response:
    # Addresses mean nothing in Python, but tools ask first whether symbols can be had here.
    return Response(headers=[PLAIN, NOSNIFF], body=b"num_symbols: 1\n")


def _index() -> Response:
    rows = "".join(f'<tr><td><a href="{name}?debug=1">{name}</a><td>{text}</tr>\n' for name, text in _ABOUT.items())
    page = f"<html>\n<head><title>{_ROOT}</title></head>\n<body>\n{_ROOT}\n<table>\n{rows}</table>\n</body>\n</html>\n"
    return Response(headers=[HTML, NOSNIFF], body=page.encode())
