"""Amounts of resources in the units that people use, and as quantities."""

from typing import Final

from trio_sched.objects.amounts.quantity import NANO
from trio_sched.objects.amounts.quantity_text import QuantityStyle, format_nano

_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MILLI: Final = NANO // 1000


def amount_text(resource: str, amount: int, *, round_up: bool = False) -> str:
    """*amount* of *resource* as people read it: ``6.1Gi``, ``250m``, ``2.5``.

    Args:
        resource: its name.
        amount: in milli-CPU, bytes or counts.
        round_up: for what is asked for; what is free is rounded down, so that no text promises too much.
    """
    if resource == "cpu":
        return f"{amount}m" if abs(amount) < 1000 else _shortened(amount, 1000, round_up)
    if not _is_bytes(resource):
        return str(amount)
    size, power = 1, 0
    while abs(amount) >= 1024 * size and power < len(_UNITS) - 1:
        size, power = 1024 * size, power + 1
    return _shortened(amount, size, round_up) + _UNITS[power] if power else str(amount)


def quantity_text(resource: str, amount: int) -> str:
    """*amount* (milli-CPU, bytes or a count) of *resource* as a quantity, exact."""
    if resource == "cpu":
        return format_nano(amount * _MILLI, QuantityStyle.DECIMAL)
    return format_nano(amount * NANO, QuantityStyle.BINARY) if _is_bytes(resource) else str(amount)


def _is_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-")


def _shortened(amount: int, size: int, round_up: bool) -> str:
    """*amount* in units of *size* with one digit after the point, if that is not 0."""
    tenths = -(-amount * 10 // size) if round_up else amount * 10 // size
    whole, rest = divmod(tenths, 10)
    return f"{whole}.{rest}" if rest or size % 1000 else str(whole)
