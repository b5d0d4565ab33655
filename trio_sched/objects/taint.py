"""Taints on nodes and the tolerations of pods."""

from msgspec import Struct

_INT64_MAX = 2**63 - 1


class Taint(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``node.spec.taints``."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``pod.spec.tolerations``; an empty *key* or *effect* tolerates all of them."""

    key: str = ""
    operator: str = ""
    """One that is not known tolerates nothing."""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


def canonical_int64(text: str) -> int | None:
    """The integer in *text* if it is in canonical form (no ``+``, no leading zeros), else None."""
    digits = text[1:] if text.startswith("-") else text
    if (
        not (digits.isascii() and digits.isdigit())
        or len(digits) > 19
        or (len(digits) > 1 and digits[0] == "0")
        or text == "-0"
    ):
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None
