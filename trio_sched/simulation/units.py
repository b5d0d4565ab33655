"""Amounts of resources and times, as people read them."""

from typing import Final

_GIB: Final = 1024**3


def heading(resource: str) -> str:
    """The name of *resource* above a column."""
    return resource.upper() if "/" not in resource else resource


def label(resource: str) -> str:
    """The name of *resource* in a text."""
    return "CPU" if resource == "cpu" else resource.capitalize() if "/" not in resource else resource


def amount(resource: str, number: int) -> str:
    """*number* (milli-CPU, bytes or a count) of *resource*; CPU and GiB with one digit after the point."""
    match resource:
        case "cpu":
            return f"{number / 1000:.1f}"
        case "memory":
            return f"{number / _GIB:.1f}Gi"
    return str(number)


def percent(part: int, whole: int) -> str:
    """What *part* is of *whole*, in whole percent, not rounded up: 100% only where nothing is left."""
    return f"{100 * part // whole}%"


def duration(seconds: float) -> str:
    """``0.250 s``, ``12.5 s``, ``90 m``: with the digits that matter."""
    if seconds == 0:
        return "0"
    if seconds < 1:
        return f"{seconds:.3f} s"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s"


def plural(number: int, what: str) -> str:
    """``1 pod``, ``2 pods``, ``2 copies``."""
    if number == 1:
        return f"{number} {what}"
    return f"{number} {what[:-1]}ies" if what.endswith("y") else f"{number} {what}s"
