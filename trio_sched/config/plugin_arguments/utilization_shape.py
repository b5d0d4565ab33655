"""``v1.UtilizationShapePoint``: the curves from utilization to score in the arguments of scoring plugins."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from trio_sched.config.decode import Given, Integer, ListOf, Struct
from trio_sched.config.errors import Problem
from trio_sched.config.problems import invalid, required
from trio_sched.plugin_api.arguments import UtilizationShapePoint

SHAPE: Final = ListOf(Struct("v1.UtilizationShapePoint", {"utilization": Integer(32), "score": Integer(32)}))
"""A curve on the wire."""

Shape = tuple[UtilizationShapePoint, ...]
"""A curve: its points, by increasing utilization if it is valid."""


def convert(given: Sequence[Given] | None) -> Shape | None:
    """The curve that is *given*; None, and not an empty one, if none is."""
    return None if given is None else tuple(UtilizationShapePoint(**point) for point in given)


def validate(shape: Shape | None, path: str) -> Iterator[Problem]:
    """What is wrong with *shape*, which stands at *path* and may not be missing."""
    if not shape:
        yield required(path, "at least one point must be specified")
        return
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            detail = "values must be sorted in increasing order"
            yield invalid(f"{path}[{index}].utilization", shape[index].utilization, detail)
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(f"{path}[{index}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            yield invalid(f"{path}[{index}].score", point.score, "not in valid range [0, 10]")


def dump(shape: Shape | None) -> list[dict[str, Any]] | None:
    """The curve as a completed file shows it; None if there is none."""
    return None if shape is None else [{"utilization": point.utilization, "score": point.score} for point in shape]
