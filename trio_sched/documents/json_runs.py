"""The tokens of JSON, and objects that follow each other in one text, as JSON lines have them, and jq writes."""

import json
import re
from typing import Final

import msgspec

TOKEN: Final = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+)')
_SPACE: Final = re.compile(r"[ \t\r\n]*")


def places_of_objects(text: str) -> list[tuple[int, int]]:
    """Where each object of *text* begins and ends; empty if it is no run of JSON objects."""
    scan, places = json.JSONDecoder().raw_decode, list[tuple[int, int]]()
    at = _after_space(text, 0)
    try:
        while at < len(text):
            if text[at] != "{":
                return []
            _, end = scan(text, at)
            msgspec.json.decode(text[at:end], type=msgspec.Raw)  # Python takes more than JSON: NaN, for one
            places.append((at, end))
            at = _after_space(text, end)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return []
    return places


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
