"""What all responses below ``/ui`` have in common, and the files of the page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from trio_sched.daemon.serving.messages import JSON, NOSNIFF, Handler, Header, Request, Response
from trio_sched.daemon.serving.pages.live.stream_events import json_line
from trio_sched.daemon.serving.pages.pages import accepts_gzip
from trio_sched.live_page.static_files import PAGE, StaticFile, static_files

ROOT: Final = "/ui"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HEADERS: Final[tuple[Header, ...]] = (NOSNIFF, ("content-security-policy", _POLICY))
EVENTS: Final = ("content-type", "text/event-stream")
GZIP: Final = ("content-encoding", "gzip")
VARIES: Final = ("vary", "Accept-Encoding")


def files_and(pages: Mapping[str, Handler]) -> dict[str, Handler]:
    """Handlers by exact path: of the files, and of *pages* by their names below ``/ui``."""
    files = {name: partial(_file, file) for name, file in static_files().items()}
    return {
        ROOT: files[PAGE],
        f"{ROOT}/": _redirect,
        **{f"{ROOT}/{name}": handler for name, handler in (dict(pages) | files).items()},
    }


async def _file(file: StaticFile, request: Request) -> Response:
    headers = [("content-type", file.media_type), ("etag", file.tag), VARIES, *HEADERS]
    known = {tag.strip().removeprefix("W/") for tag in request.header("if-none-match").split(",")}
    if file.tag in known or "*" in known:
        return Response(status=304, headers=headers)
    if accepts_gzip(request.header("accept-encoding")):
        return Response(headers=[*headers, GZIP], body=file.zipped)
    return Response(headers=headers, body=file.content)


async def _redirect(_request: Request) -> Response:
    return Response(status=301, headers=[("location", f"..{ROOT}"), *HEADERS])


def json_response(data: dict[str, Any]) -> Response:
    """*data* as JSON."""
    return Response(headers=[JSON, *HEADERS], body=json_line(data))


def error_response(text: str, status: int) -> Response:
    """Why there is nothing else, as the page shows it."""
    return Response(status=status, headers=[JSON, *HEADERS], body=json_line({"error": text}))
