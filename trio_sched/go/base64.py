"""Base64 as Go decodes it: line ends are skipped, and an error names the first byte that is wrong."""

import base64
import string
from typing import Final

from trio_sched.errors import TrioSchedError

_ALPHABET: Final = frozenset(string.ascii_letters + string.digits + "+/")
_LINE_ENDS: Final = "\r\n"


class InvalidBase64(TrioSchedError):
    """A text that is no base64, in the words of Go."""


def decode_base64(text: str) -> bytes:
    """The bytes that *text* stands for.

    Raises:
        InvalidBase64: it is no base64; the text says at which byte.
    """
    wrong = _first_wrong_byte(text)
    if wrong is not None:
        raise InvalidBase64(f"illegal base64 data at input byte {wrong}")
    return base64.b64decode("".join(text.split()))


def _first_wrong_byte(text: str) -> int | None:
    in_quantum = 0
    for at, character in enumerate(text):
        if character in _ALPHABET:
            in_quantum = (in_quantum + 1) % 4
        elif character == "=":
            return _after_padding(text, at, missing=4 - in_quantum)
        elif character not in _LINE_ENDS:
            return len(text[:at].encode())
    return len(text) - in_quantum if in_quantum else None


def _after_padding(text: str, at: int, *, missing: int) -> int | None:
    """What is wrong from the first ``=`` at *at* on, which should be *missing* of them and nothing else."""
    if missing > 2:
        return at
    rest = at + 1
    if missing == 2:
        rest = _skip_line_ends(text, rest)
        if rest == len(text):
            return rest
        if text[rest] != "=":
            return rest - 1
        rest += 1
    rest = _skip_line_ends(text, rest)
    return rest if rest < len(text) else None


def _skip_line_ends(text: str, at: int) -> int:
    while at < len(text) and text[at] in _LINE_ENDS:
        at += 1
    return at
