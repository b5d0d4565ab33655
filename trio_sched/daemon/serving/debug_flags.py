"""``/debug/flags``: flags that can be changed while the process runs; of these there is one, ``v``."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from trio_sched.daemon.log_setup import set_verbosity
from trio_sched.daemon.serving.messages import HTML, NOSNIFF, Handler, Request, Response
from trio_sched.documents.errors import shortened
from trio_sched.documents.go_text import quote

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
_MAX_DIGITS = 10
_LEVELS = 1 << 31


@frozen
class DebugFlags:
    """The pages."""

    def handlers(self) -> Mapping[str, Handler]:
        """By exact path."""
        return {"/debug/flags": _serve_index, "/debug/flags/v": _serve_verbosity}

    def prefix_handlers(self) -> Mapping[str, Handler]:
        """By prefix."""
        return {"/debug/flags/": _serve_index}


async def _serve_index(_request: Request) -> Response:
    return Response(headers=[HTML], body=_INDEX.encode())


async def _serve_verbosity(request: Request) -> Response:
    if request.method != "PUT":
        return _answer(406, "unsupported http method")
    text = request.body.decode("utf-8", "replace")
    if not (text.isascii() and text.isdecimal()):
        return _answer(400, f"strconv.ParseUint: parsing {quote(shortened(text))}: invalid syntax")
    if len(text.lstrip("0")) > _MAX_DIGITS or int(text) >= _LEVELS:
        return _answer(400, f"strconv.ParseUint: parsing {quote(shortened(text))}: value out of range")
    set_verbosity(int(text))
    return _answer(200, f"successfully set klog.logging.verbosity to {text}")


def _answer(status: int, text: str) -> Response:
    return Response(status=status, headers=[("content-type", "text/plain"), NOSNIFF], body=f"{text}\n".encode())
