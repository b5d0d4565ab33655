"""What a YAML scalar means: YAML 1.1 as kube-scheduler's YAML library reads it.

Source: the scalar resolution of go-yaml v2 (booleans like ``yes`` and ``on``, octal ``010``, ``1_000``; no base 60,
timestamps stay text).
"""

import base64
import math
import re
from typing import Final

from trio_sched.documents.errors import DocumentError
from trio_sched.go.text import shortened

Scalar = str | int | float | bool | None
"""What a scalar can mean."""

_PREFIX: Final = "tag:yaml.org,2002:"
STR_TAG: Final = _PREFIX + "str"
MERGE_TAG: Final = _PREFIX + "merge"
BINARY_TAG: Final = _PREFIX + "binary"
_BOOL_TAG: Final = _PREFIX + "bool"
_INT_TAG: Final = _PREFIX + "int"
_FLOAT_TAG: Final = _PREFIX + "float"
_NULL_TAG: Final = _PREFIX + "null"
_TIMESTAMP_TAG: Final = _PREFIX + "timestamp"
_RESOLVABLE: Final = ("", STR_TAG, _BOOL_TAG, _INT_TAG, _FLOAT_TAG, _NULL_TAG, _TIMESTAMP_TAG)


def _in_three_cases(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: Final[dict[str, tuple[str, Scalar]]] = {
    **dict.fromkeys(_in_three_cases("y", "yes", "true", "on"), (_BOOL_TAG, True)),
    **dict.fromkeys(_in_three_cases("n", "no", "false", "off"), (_BOOL_TAG, False)),
    **dict.fromkeys(["", "~", *_in_three_cases("null")], (_NULL_TAG, None)),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], (_FLOAT_TAG, math.nan)),
    **dict.fromkeys([sign + form for sign in ("", "+") for form in (".inf", ".Inf", ".INF")], (_FLOAT_TAG, math.inf)),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], (_FLOAT_TAG, -math.inf)),
    "<<": (MERGE_TAG, "<<"),
}
_HINTS: Final = frozenset("+-0123456789yYnNtTfFoO~.<")
_INTEGER: Final = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]([0-7]+)|0([0-7]+)|([1-9][0-9]*|0))", re.ASCII
)
_MAX_DIGITS: Final = 20
"""More have no room in 64 bits, and Python refuses to read thousands of them."""
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)


def resolve_scalar(text: str, tag: str) -> Scalar:
    """What *text* means under *tag* (empty for a plain scalar without one).

    Raises:
        DocumentError: the text is no value of the tag's type.
    """
    if tag == BINARY_TAG:
        try:
            return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode("utf-8", "replace")
        except ValueError:  # binascii.Error, or characters beyond ASCII
            raise DocumentError("yaml: !!binary value contains invalid base64 data") from None
    if tag not in _RESOLVABLE or tag == STR_TAG:
        return text
    found, value = _resolve_plain(text)
    if tag in ("", found):
        return value
    if tag == _FLOAT_TAG and found == _INT_TAG and isinstance(value, int) and value < 1 << 63:
        return float(value)
    raise DocumentError(f"yaml: cannot decode {_short(found)} `{shortened(text)}` as a {shortened(_short(tag))}")


def reads_as_text(text: str) -> bool:
    """Whether *text*, written without quotes, would be read back as that text by every YAML 1.1 reader."""
    return _resolve_plain(text)[0] == STR_TAG and not _BASE_60.fullmatch(text) and not _is_date(text)


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix(_PREFIX) if tag.startswith(_PREFIX) else tag


def _resolve_plain(text: str) -> tuple[str, Scalar]:
    if text and text[0] not in _HINTS:
        return STR_TAG, text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "+-0123456789":
        digits = text.replace("_", "")
        integer = _integer(digits)
        if integer is not None:
            return _INT_TAG, integer
        return _float(digits, otherwise=text)
    return _float(text, otherwise=text) if text[0] == "." else (STR_TAG, text)


def _integer(text: str) -> int | None:
    match = _INTEGER.fullmatch(text)
    if match is None or len(match.group(6) or "") > _MAX_DIGITS:
        return None
    sign, hexadecimal, binary, octal, old_octal, decimal = match.groups()
    if hexadecimal:
        number = int(hexadecimal, 16)
    elif binary:
        number = int(binary, 2)
    elif octal or old_octal:
        number = int(octal or old_octal, 8)
    else:
        number = int(decimal)
    number = -number if sign == "-" else number
    # With a sign it must be an int64, without one it may be a uint64.
    return number if -(1 << 63) <= number < (1 << 63 if sign else 1 << 64) else None


def _float(text: str, *, otherwise: str) -> tuple[str, Scalar]:
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return _FLOAT_TAG, number
    return STR_TAG, otherwise


_DATE: Final = re.compile(
    r"[0-9]{4}-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?",
    re.ASCII,
)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    return match is not None and 1 <= int(match.group(1)) <= 12 and 1 <= int(match.group(2)) <= 31
