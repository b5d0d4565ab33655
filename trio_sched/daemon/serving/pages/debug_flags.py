"""``/debug/flags``: the flags that can be changed while the process runs.

``v`` is as in kube-scheduler, whose index has nothing else; ``vmodule`` and ``trace-plugins`` are ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from trio_sched.daemon.logs.log_setup import set_verbosity, set_vmodule
from trio_sched.daemon.plugins.plugin_trace import BadTraceSelector, PluginTrace, TraceSelector
from trio_sched.daemon.serving.messages import HTML, NOSNIFF, Handler, Request, Response
from trio_sched.documents.verbosity_text import parse_verbosity, parse_vmodule
from trio_sched.go.text import quote, shortened

_INDEX = """\
<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""


@frozen
class DebugFlags:
    """The pages."""

    plugin_trace: PluginTrace

    def handlers(self) -> Mapping[str, Handler]:
        """By exact path."""
        return {
            "/debug/flags": _serve_index,
            "/debug/flags/v": _serve_verbosity,
            "/debug/flags/vmodule": _serve_vmodule,
            "/debug/flags/trace-plugins": self._serve_trace_plugins,
        }

    async def _serve_trace_plugins(self, request: Request) -> Response:
        if request.method != "PUT":
            return _answer(406, "unsupported http method")
        text = request.body.decode("utf-8", "replace").strip()
        try:
            self.plugin_trace.choose(TraceSelector.read(text) if text else None)
        except BadTraceSelector as error:
            return _answer(400, f"{error}; empty to end it")
        return _answer(200, f"successfully set trace-plugins to {quote(shortened(text))}")

    def prefix_handlers(self) -> Mapping[str, Handler]:
        """By prefix."""
        return {"/debug/flags/": _serve_index}


async def _serve_index(_request: Request) -> Response:
    return Response(headers=[HTML], body=_INDEX.encode())


async def _serve_verbosity(request: Request) -> Response:
    if request.method != "PUT":
        return _answer(406, "unsupported http method")
    text = request.body.decode("utf-8", "replace")
    try:
        set_verbosity(parse_verbosity(text))
    except ValueError as error:
        return _answer(400, str(error))
    return _answer(200, f"successfully set klog.logging.verbosity to {text}")


async def _serve_vmodule(request: Request) -> Response:
    if request.method != "PUT":
        return _answer(406, "unsupported http method")
    text = request.body.decode("utf-8", "replace")
    try:
        set_vmodule(parse_vmodule(text))
    except ValueError as error:
        return _answer(400, f"{error}; vmodule is pattern=N,..., or empty to end it")
    return _answer(200, f"successfully set vmodule to {quote(shortened(text))}")


def _answer(status: int, text: str) -> Response:
    return Response(status=status, headers=[("content-type", "text/plain"), NOSNIFF], body=f"{text}\n".encode())
