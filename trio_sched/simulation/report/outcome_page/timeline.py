"""Charts of what happened when: arrivals, placements and preemptions, and how much was requested."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from trio_sched.simulation.node_usage import total_usage
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.outcome_page.markup import Markup, element, join
from trio_sched.simulation.units import duration

_WIDTH: Final = 1000
_HEIGHT: Final = 220
_LEFT: Final = 56
_BOTTOM: Final = 24
_TOP: Final = 10
_POINTS: Final = 500
"""The most points of a line; more could not be told apart."""
_TICKS: Final = 5
_STEPS_OF_TIME: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600)

Series = Callable[[float], float]
"""The value at a second."""


def timeline(outcome: Outcome) -> Markup:
    """The charts; a sentence if nothing happened."""
    times = outcome.timeline
    if not times.arrivals and len(times.requested) < 2:
        return element("p", "No pod was created or placed.")
    end = max([outcome.simulated_seconds, *times.arrivals[-1:], *times.placements[-1:], times.requested[-1][0], 1.0])
    pods = {"three": _count(times.arrivals), "one": _count(times.placements)}
    usage = total_usage(node.usage for node in outcome.nodes)
    starts = [step[0] for step in times.requested]
    shares = {
        "one": _share(starts, [cpu for _from, cpu, _memory in times.requested], usage.allocatable.get("cpu", 0)),
        "two": _share(starts, [memory for _from, _cpu, memory in times.requested], usage.allocatable.get("memory", 0)),
    }
    most = max(len(times.arrivals), 1)
    highest = max([1.0, *(series(seconds) for series in shares.values() for seconds in starts)])
    keys = [("three", "created, without a node"), ("one", "placed")]
    if times.preemptions:
        keys.append(("two", "a preemption (mark below)"))
    counted, requested = "Pods, in sum", "Requested of what the nodes offer at the end"
    return join(
        element("h3", counted),
        _keys(keys),
        _chart(counted, pods, end, float(most), 1.0, lambda value: f"{value:.0f}", times.preemptions),
        element("h3", requested),
        _keys([("one", "CPU"), ("two", "memory")]),
        _chart(requested, shares, end, highest, 0.01, lambda value: f"{100 * value:.0f}%"),
    )


def _count(moments: Sequence[float]) -> Series:
    return lambda seconds: float(bisect_right(moments, seconds))


def _share(starts: Sequence[float], amounts: Sequence[int], allocatable: int) -> Series:
    def share(seconds: float) -> float:
        position = bisect_right(starts, seconds) - 1
        return amounts[position] / allocatable if allocatable and position >= 0 else 0.0

    return share


def _keys(keys: Sequence[tuple[str, str]]) -> Markup:
    parts = (element("span", element("i", class_=f"key {style}"), text) for style, text in keys)
    return element("div", *parts, class_="keys")


def _chart(
    title: str,
    series: dict[str, Series],
    end: float,
    top: float,
    smallest: float,
    label: Callable[[float], str],
    marks: Sequence[float] = (),
) -> Markup:
    """Lines by their style, from 0 to *end* seconds and from 0 to *top*; *marks* stand on the axis."""
    ground = _HEIGHT - _BOTTOM

    def x(seconds: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - 8) * seconds / end, 1)

    def y(value: float) -> float:
        return round(ground - (ground - _TOP) * value / top, 1)

    parts: list[Markup] = []
    for value in _ticks(top, smallest):
        parts.append(element("line", class_="axis", x1=_LEFT, x2=_WIDTH - 8, y1=y(value), y2=y(value)))
        parts.append(element("text", label(value), x=_LEFT - 6, y=y(value) + 4, text_anchor="end"))
    for seconds in _ticks_of_time(end):
        parts.append(element("text", duration(seconds), x=x(seconds), y=_HEIGHT - 6, text_anchor="middle"))
    for mark in sorted({x(seconds) for seconds in marks}):
        parts.append(element("line", class_="tick", x1=mark, x2=mark, y1=ground - 7, y2=ground + 3))
    for style, value_at in series.items():
        parts.append(element("path", class_=f"line {style}", d=_path(value_at, end, x, y)))
    return element("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=title)


def _path(value_at: Series, end: float, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    """Steps: a value holds until the next."""
    drawn = [f"M{x(0)} {y(value_at(0))}"]
    last = value_at(0)
    for point in range(1, _POINTS + 1):
        seconds = end * point / _POINTS
        value = value_at(seconds)
        if value != last:
            drawn.append(f"H{x(seconds)}V{y(value)}")
            last = value
    return "".join([*drawn, f"H{x(end)}"])


def _ticks(top: float, step: float) -> list[float]:
    """Round values from 0 to *top*, *step* apart or so many times as much that there are few."""
    while top / step > _TICKS:
        step *= 2.5 if f"{step:e}".startswith("2") else 2
    return [step * number for number in range(int(top / step + 1e-9) + 1)]


def _ticks_of_time(end: float) -> list[float]:
    step = next((one for one in _STEPS_OF_TIME if end / one <= 10), 0.0)
    if not step:
        step = 86400.0
        while end / step > 10:
            step *= 2
    return [step * number for number in range(int(end / step) + 1)]
