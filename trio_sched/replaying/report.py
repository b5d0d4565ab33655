"""What a replay has found, as lines and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from trio_sched.replaying.results import Difference, ReplayResult

_ROWS: Final = 20
"""So many differences are shown unless all are asked for."""


def as_lines(result: ReplayResult, *, every_pod: bool) -> Iterator[str]:
    """*result* for a person; *every_pod*: with all differences that are kept."""
    shown = result.differences if every_pod else result.differences[:_ROWS]
    for one in shown:
        yield f"{_time(one.at)}  {one.pod}: recorded {one.recorded}, replayed {one.replayed}"
        if one.why:
            yield f"    {one.why}"
    if result.different > len(shown):
        yield f"and {result.different - len(shown)} more" + ("" if every_pod else "; --pods shows them")
    if shown:
        yield ""
    yield from notes(result)
    for reason, count in result.not_compared.items():
        yield f"Not compared: {count} {reason}"
    for text in result.out_of_order[:_ROWS]:
        yield f"Other order: {text}"
    if result.in_order or result.out_of_order:
        others = len(result.out_of_order)
        yield f"Queue: {result.in_order} pods returned in the same order" + (f", {others} in another" if others else "")
    if result.first_at is not None:
        yield f"From {_time(result.first_at)} until {_time(result.last_at)}"
    same = result.decisions - result.different
    chance = f", {result.equally_good} of them by chance only among equal scores" if result.equally_good else ""
    yield f"{result.decisions} decisions, {same} the same{chance}, {result.different} different"
    yield f"{result.changes} changes of objects"
    yield f"sha256 {result.digest}"


def notes(result: ReplayResult) -> Iterator[str]:
    """What is missing of the recording, or is not as it was when it was made."""
    for note in result.notes:
        yield f"Note: {note}"
    for segment, count in result.lost_bytes.items():
        yield f"Note: {count} bytes at the end of {segment} cannot be read; what was before them is replayed"
    if result.missed:
        yield f"Note: {result.missed} records are missing, because the disk was too slow for them"
    if result.beginnings > 1:
        yield f"Note: the replay began {result.beginnings} times with what existed, because something before is missing"


def as_data(result: ReplayResult) -> dict[str, Any]:
    """*result* for JSON and YAML."""
    return {
        "decisions": result.decisions,
        "different": result.different,
        "equallyGood": result.equally_good,
        "inOrder": result.in_order,
        "outOfOrder": list(result.out_of_order),
        "notCompared": dict(result.not_compared),
        "changes": result.changes,
        "beginnings": result.beginnings,
        "lostBytes": dict(result.lost_bytes),
        "missedRecords": result.missed,
        "notes": list(result.notes),
        "digest": result.digest,
        "differences": [_difference_as_data(one) for one in result.differences],
    }


def _difference_as_data(one: Difference) -> dict[str, Any]:
    return {"pod": one.pod, "at": _time(one.at), "recorded": one.recorded, "replayed": one.replayed, "why": one.why}


def _time(posix_seconds: float) -> str:
    try:
        moment = datetime.fromtimestamp(posix_seconds, UTC)
    except (ValueError, OverflowError, OSError):  # a recording may claim any time
        return str(posix_seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
