"""The text format of Prometheus, version 0.0.4, to the byte as kube-scheduler writes it.

Families by name, series by the values of their labels, labels by name, numbers as Go writes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from trio_sched.daemon.metrics.families.exposed import Exposed
from trio_sched.daemon.metrics.families.families import Family
from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.go.text import general_float

_IN_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_IN_VALUE: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_POSITIONAL: Final = 1_000_000


def number(value: float) -> str:
    """A number as Go writes it: ``1``, ``0.25``, ``4.194304e+06``, ``+Inf``."""
    if -_POSITIONAL < value < _POSITIONAL and value == int(value):
        return str(int(value))
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else general_float(value)


def lines(exposed: Exposed) -> Iterator[str]:
    """The lines of one family, each with its end; none if it has no series."""
    if not exposed.series:
        return
    family, name = exposed.family, exposed.family.name
    yield f"# HELP {name} {family.help.translate(_IN_HELP)}\n# TYPE {name} {family.type.value}\n"
    for values, value in exposed.series:
        labels = _labels(family, values)
        if isinstance(value, Histogram):
            yield _histogram(name, labels, value)
        else:
            yield f"{name}{{{labels}}} {number(value)}\n" if labels else f"{name} {number(value)}\n"


def _labels(family: Family, values: tuple[str, ...]) -> str:
    return ",".join(
        f'{label}="{value.translate(_IN_VALUE)}"' for label, value in zip(family.labels, values, strict=True)
    )


@lru_cache(maxsize=256)
def _bounds(bounds: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(map(number, (*bounds, math.inf)))


def _histogram(name: str, labels: str, histogram: Histogram) -> str:
    before, braces = (f"{labels},", f"{{{labels}}}") if labels else ("", "")
    total, parts = 0, []
    for bound, count in zip(_bounds(tuple(histogram.bounds)), histogram.counts, strict=True):
        total += count
        shown = total if total < _POSITIONAL else number(total)
        parts.append(f'{name}_bucket{{{before}le="{bound}"}} {shown}\n')
    parts.append(f"{name}_sum{braces} {number(histogram.sum)}\n{name}_count{braces} {number(total)}\n")
    return "".join(parts)
