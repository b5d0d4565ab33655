"""``/flagz`` and ``/statusz``: the flags, and how long which version has been running."""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from attrs import define, field

import trio_sched
from trio_sched.daemon.serving.messages import PLAIN, Request, Response
from trio_sched.daemon.serving.negotiation import negotiate
from trio_sched.daemon.serving.status_bodies import JSON_TYPE, YAML_TYPE, encode, not_acceptable

COMPONENT: Final = "kube-scheduler"
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1alpha1", "v1beta1")
_TEXT: Final = "text/plain"
_FORMS: Final = (JSON_TYPE, YAML_TYPE, _TEXT)
_WARNING: Final = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
    "and is for debugging purposes only."
)
_SEPARATORS: Final = (": ", ":", "=", " ")
_PATHS: Final = ("/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz")


@define(eq=False)
class ZPage:
    """A page for people, with a structured form for those who name its kind and version."""

    kind: str
    render_text: Callable[[], str]
    render_fields: Callable[[], dict[str, Any]]

    async def __call__(self, request: Request) -> Response:
        """The text, the object, or 406."""
        if not request.header("accept").strip():
            return self._text()
        accepted = negotiate(request, _FORMS, self._allows)
        if accepted is None:
            return not_acceptable(request, _FORMS)
        if accepted.media_type == _TEXT:
            return self._text()
        version = accepted.conversion["v"]
        content = {
            "kind": self.kind,
            "apiVersion": f"{_GROUP}/{version}",
            "metadata": {"name": COMPONENT},
            **self.render_fields(),
        }
        media_type = f"{accepted.media_type};g={_GROUP};v={version};as={self.kind}"
        response = Response(headers=[("content-type", media_type)], body=encode(content, accepted))
        if version == "v1alpha1":
            advice = f"This version of the {self.kind.lower()} endpoint is deprecated. Please use a newer version."
            response.headers.append(("warning", f'299 - "{advice}"'))
        return response

    def _text(self) -> Response:
        return Response(headers=[PLAIN], body=self.render_text().encode())

    def _allows(self, media_type: str, conversion: Mapping[str, str]) -> bool:
        if media_type == _TEXT:
            return not conversion
        return conversion.get("g") == _GROUP and conversion.get("v") in _VERSIONS and conversion.get("as") == self.kind


def flagz(flags: Mapping[str, str]) -> ZPage:
    """The page with all *flags*."""
    shown = dict(sorted(flags.items()))
    separator = random.choice(_SEPARATORS)  # so that nobody begins to parse it

    def text() -> str:
        lines = [f"{name}{separator}{value}" for name, value in shown.items()]
        return "\n".join(["", f"{COMPONENT} flagz", _WARNING, "", *lines])

    return ZPage("Flagz", text, lambda: {"flags": shown})


@define(eq=False)
class _Uptime:
    started: datetime = field(factory=lambda: datetime.now(UTC))
    _began: float = field(factory=time.monotonic)

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self._began)


def statusz(
    binary_version: str, emulation_version: str, unwatched: Callable[[], Mapping[str, str]] = lambda: {}
) -> ZPage:
    """The page about this process.

    Args:
        binary_version: ``1.36.2``.
        emulation_version: ``1.36``.
        unwatched: kinds of which nothing is known, and why; only if there are some, the page has something about them
            that kube-scheduler's has not.
    """
    uptime = _Uptime()
    runtime = f"{platform.python_implementation()} {platform.python_version()}"

    def text() -> str:
        separator = random.choice(_SEPARATORS)
        minutes, seconds = divmod(uptime.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        values = {
            "Started": f"{uptime.started:%a %b %d %H:%M:%S} UTC {uptime.started:%Y}",
            "Up": f"{hours} hr {minutes:02d} min {seconds:02d} sec",
            "Go version": f"none ({runtime}, trio-sched {trio_sched.__version__})",
            "Binary version": binary_version,
            "Emulation version": emulation_version,
            "Paths": " ".join(_PATHS),
        }
        lines = [f"{name}{separator} {value}" for name, value in values.items()]
        lines += [f"Not watched{separator} {kind}: {why}" for kind, why in unwatched().items()]
        return "\n".join(["", f"{COMPONENT} statusz", _WARNING, "", *lines, ""])

    def fields() -> dict[str, Any]:
        missing = dict(unwatched())
        return {
            **({"notWatched": missing} if missing else {}),
            "startTime": f"{uptime.started:%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": uptime.seconds,
            "goVersion": f"none ({runtime})",
            "binaryVersion": binary_version,
            "emulationVersion": emulation_version,
            "paths": list(_PATHS),
        }

    return ZPage("Statusz", text, fields)
