"""What is known about the carbon intensity of zones: a table by hour, or a server that is asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from attrs import define, field

from trio_sched.plugin_api import Http, HttpFailed, parse_time

HOUR: Final = 3600.0
MAX_BODY_BYTES: Final = 2**20
MAX_FORECAST: Final = 500
_MAX_TOKEN_BYTES: Final = 16_384

Forecast = Sequence[tuple[float, float]]
"""(from when on, grams of CO₂ per kWh), in order; the first is the present."""


class UnusableData(Exception):
    """The source gave nothing that can be used; the text says why."""


def of_table(hours: Sequence[float], zone: ZoneInfo, now: float, until: float) -> Forecast:
    """What a table by hour of the day says from *now* to *until*, at most for two days."""
    found = [(now, hours[datetime.fromtimestamp(now, zone).hour])]
    moment = (now // HOUR + 1) * HOUR
    while moment <= min(until, now + 48 * HOUR):
        found.append((moment, hours[datetime.fromtimestamp(moment, zone).hour]))
        moment += HOUR
    return found


def at_path(document: Any, path: str) -> Any:
    """What is at *path* in JSON: names and numbers, separated by dots.

    Raises:
        UnusableData: there is nothing.
    """
    found = document
    for part in path.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.lstrip("-").isdigit() and -len(found) <= int(part) < len(found):
            found = found[int(part)]
        else:
            raise UnusableData(f"the response has nothing at {path!r}: {part!r} is missing")
    return found


def intensity(value: Any) -> float:
    """A number of grams per kWh.

    Raises:
        UnusableData: it is none.
    """
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not 0.0 <= found <= 100_000.0:
        raise UnusableData(f"{str(value)[:63]!r} is no carbon intensity")
    return found


def forecast_at(document: Any, path: str, time_key: str, value_key: str) -> list[tuple[float, float]]:
    """The list of predictions at *path*; entries that cannot be read are left out.

    Raises:
        UnusableData: there is no list.
    """
    entries = at_path(document, path)
    if not isinstance(entries, list):
        raise UnusableData(f"the response has no list at {path!r}")
    found = []
    for entry in entries[:MAX_FORECAST]:
        try:
            moment, value = at_path(entry, time_key), intensity(at_path(entry, value_key))
        except UnusableData:
            continue
        seconds = parse_time(moment) if isinstance(moment, str) else None
        if seconds is not None:
            found.append((seconds, value))
    return sorted(found)


async def fetch(
    http: Http, url: str, zone: str, *, token_header: str, token_file: str, ca_file: str, timeout_seconds: float
) -> Any:
    """Ask for *zone*; returns decoded JSON.

    Raises:
        UnusableData: there is no usable answer.
    """
    headers = {token_header: _token(token_header, token_file)} if token_file else {}
    try:
        response = await http.get(
            url.replace("{zone}", quote(zone, safe="")),
            headers=headers,
            timeout_seconds=timeout_seconds,
            ca_file=ca_file,
        )
        if len(response.body) > MAX_BODY_BYTES:
            raise UnusableData(f"the response has {len(response.body)} bytes, at most {MAX_BODY_BYTES} are read")
        return response.check().json()
    except (HttpFailed, ValueError) as problem:
        raise UnusableData(str(problem)) from problem


def _token(header: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            token = file.read(_MAX_TOKEN_BYTES).strip().decode("ascii")
    except (OSError, UnicodeDecodeError) as problem:
        raise UnusableData(f"tokenFile {path!r} cannot be read: {type(problem).__name__}") from None
    if not token or not token.isprintable():
        raise UnusableData(f"tokenFile {path!r} contains no token, or more than one line")
    return f"Bearer {token}" if header.lower() == "authorization" else token


@define(eq=False)
class FetchedForecasts:
    """What a server said last about each zone."""

    max_age: float
    _found: dict[str, tuple[float, Forecast]] = field(factory=dict, init=False)

    def put(self, zone: str, forecast: Forecast, now: float) -> None:
        """It said this at *now*."""
        self._found[zone] = (now, forecast)

    def get(self, zone: str, now: float) -> Forecast:
        """The forecast, with the present first; empty if it is too old."""
        at, forecast = self._found.get(zone, (-math.inf, ()))
        if now - at > self.max_age or not forecast:
            return ()
        begun = [value for moment, value in forecast if moment <= now]
        return [(now, begun[-1] if begun else forecast[0][1]), *(one for one in forecast if one[0] > now)]
