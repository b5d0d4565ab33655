"""Lists on pages: cut, counted, and made in slices between which pods are scheduled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, TypeVar

from trio_sched.daemon.serving import limits
from trio_sched.daemon.slices import in_slices

_T = TypeVar("_T")


async def listed(items: Collection[_T] | Iterable[_T], render: Callable[[_T], dict[str, Any]]) -> dict[str, Any]:
    """The first of *items* as *render* shows each, how many there are, and how many of them were left out."""
    count = len(items) if isinstance(items, Collection) else sum(1 for _ in items)
    chosen = list(islice(items, limits.MAX_PAGE_ITEMS))  # at once: they change while the page is made
    rendered = [render(item) async for item in in_slices(chosen)]
    return {"count": count, "items": rendered, "leftOut": count - len(rendered)}
