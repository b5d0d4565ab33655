"""Which form of an object a client asks for: the ``Accept`` header as API servers read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from trio_sched.daemon.serving.messages import Request

_HUMAN_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_CONVERSION: Final = ("as", "g", "v")

Allows = Callable[[str, Mapping[str, str]], bool]
"""Whether a media type may be had with such a conversion: ``g``, ``v`` and ``as``, empty if none is asked for."""


@frozen(kw_only=True)
class Accepted:
    """What the client gets."""

    media_type: str
    conversion: Mapping[str, str] = field(factory=dict)
    pretty: bool = False


@frozen(order=True)
class _Clause:
    rank: tuple[float, bool, bool]
    type: str = field(order=False)
    subtype: str = field(order=False)
    parameters: Mapping[str, str] = field(order=False)


def no_conversion(_media_type: str, conversion: Mapping[str, str]) -> bool:
    """Every media type, but only the object as it is."""
    return not conversion


def negotiate(request: Request, offered: Sequence[str], allows: Allows = no_conversion) -> Accepted | None:
    """The first of *offered* that *request* accepts; None if it accepts none of them.

    Args:
        request: with its ``Accept`` header.
        offered: media types, the preferred one first.
        allows: see `Allows`.
    """
    pretty = _is_for_people(request)
    header = request.header("accept")
    if not header:
        return Accepted(media_type=offered[0], pretty=pretty)
    for clause in _clauses(header):
        conversion = {name: clause.parameters[name] for name in _CONVERSION if name in clause.parameters}
        if clause.parameters.get("stream") or clause.parameters.get("sv"):
            continue
        for media_type in offered:
            main, _, sub = media_type.partition("/")
            if clause.type not in (main, "*") or clause.subtype not in (sub, "*"):
                continue
            if clause.type == "*" and clause.subtype != "*":
                continue
            if allows(media_type, conversion):
                asked_pretty = clause.parameters.get("pretty") == "1"
                return Accepted(media_type=media_type, conversion=conversion, pretty=pretty or asked_pretty)
    return None


def _clauses(header: str) -> list[_Clause]:
    found = []
    for text in header.split(","):
        media_range, *rest = text.split(";")
        main, slash, sub = media_range.strip().partition("/")
        if not slash:
            if main != "*":
                continue
            sub = "*"
        parameters = {}
        for part in rest:
            name, _, value = part.partition("=")
            parameters[name.strip()] = value.strip()
        quality = parameters.pop("q", "")
        try:
            rank = float(quality) if quality else 1.0
        except ValueError:
            rank = 1.0
        found.append(_Clause((-rank, main == "*", sub == "*"), main, sub, parameters))
    return sorted(found)


def _is_for_people(request: Request) -> bool:
    """Whether JSON is to be indented: by the query, or because a browser or a tool for the terminal asks."""
    asked = request.parameter("pretty")
    if asked:
        return asked in _TRUE
    return request.header("user-agent").startswith(_HUMAN_AGENTS)
