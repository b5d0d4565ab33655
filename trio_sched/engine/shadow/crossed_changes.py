"""Finds the changes that crossed a decision: in a view without them, or with them, this scheduler decides the same.

Not every view is one that the other scheduler can have had:

- It knows its own decisions before anybody else, in the order in which it made them. Pods that it tries for the first
  time it takes by priority, then in the order of their creation; only how many pods of other priorities came before is
  not known. When it tries a pod again is not known either: such decisions may count or not.
- Everything else it learns from its watches, which may lag behind, one for every kind: what has happened last it does
  not know, but it knows nothing of what is before in part only. And it cannot know what came after its decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from typing import Final

from attrs import define, field, frozen

from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.shadow.altered_view import Crossing, altered
from trio_sched.engine.shadow.window import Window
from trio_sched.objects.pod import Pod

MAX_VIEWS: Final = 300
"""So many views are looked at for one decision."""
_CUTS: Final = 40
_SINGLES: Final = 20
_STEPS: Final = 25
_NEAREST: Final = 4
"""So many of the views that nearly explain it are looked at once more, step by step."""
_PRUNING: Final = 30
"""Views that are looked at to find out what is not needed of an explanation."""

Steps = Generator[None, None, tuple[Crossing, ...] | None]
"""Yields between two views, where the cache is as it was."""
_View = tuple[Crossing, ...]


@frozen
class Distance:
    """How far a view is from explaining a decision."""

    gap: float
    """0: it explains it."""
    nodes: Collection[str] = ()
    """The nodes that are in the way: those that are better."""


@define(eq=False)
class CrossedChanges:
    """The search for one decision."""

    scheduler: Scheduler
    window: Window
    schedulers: Collection[str]
    """The schedulerNames of the other scheduler."""
    pod: Pod
    node_name: str
    """The node that was chosen; empty if none was."""
    distance: Callable[[], Distance]
    """Evaluates the view that is in the cache."""
    with_starts: bool = field(kw_only=True)
    """Whether it matters when a pod has started: which victims are preferred depends on that."""
    nearest: float = field(default=math.inf, init=False)
    """The smallest gap so far."""
    _left: int = field(default=MAX_VIEWS, init=False)
    _in_order: _View = field(default=(), init=False)
    """What its own order of decisions makes of the view in the cache."""
    _queued: Sequence[Crossing] = field(default=(), init=False)
    """Its decisions on pods of other priorities, which waited for the first time when this one did."""
    _retried: Sequence[Crossing] = field(default=(), init=False)
    """Its decisions on pods that it tried again, or on all others if it tried this one again."""
    _learned: Sequence[Crossing] = field(default=(), init=False)
    """What it has learned from watches, and perhaps not yet; the newest first."""

    def search(self, now: Distance) -> Steps:
        """Find changes that explain the decision.

        Args:
            now: how far the view in the cache is from explaining it.
        """
        self._sort()
        self.nearest = now.gap
        nodes = set(now.nodes)
        bases: list[tuple[_View, Distance]] = []
        # The first one: if the pod was tried before, in the moment before it was bound, nothing has shown that.
        for view in dict.fromkeys(((), self._in_order, self._by_creation())):
            distance = now
            if view:
                distance = self._try(view)
                if distance.gap == 0:
                    return (yield from self._smallest(view))
                yield
            nodes.update(distance.nodes)
            bases.append((view, distance))
        others: list[tuple[_View, Distance]] = []
        for view in self._views([base for base, _distance in bases], nodes):
            if self._left <= 0:
                return None
            distance = self._try(view)
            if distance.gap == 0:
                return (yield from self._smallest(view))
            others.append((view, distance))
            yield
        others.sort(key=lambda one: one[1].gap)
        for base, distance in (*bases, *others[:_NEAREST]):
            found = yield from self._step_by_step(base, distance)
            if found is not None:
                return (yield from self._smallest(found))
        return None

    def _try(self, view: _View) -> Distance:
        self._left -= 1
        with altered(self.scheduler, view):
            found = self.distance()
        self.nearest = min(self.nearest, found.gap)
        return found

    def _sort(self) -> None:
        in_order: list[Crossing] = []
        queued: list[Crossing] = []
        retried: list[Crossing] = []
        learned: list[Crossing] = []
        own_place, window = self.window.first_place(self.pod.uid), self.window
        for one in window.crossings(self.pod.uid):
            if not self.with_starts and one.is_only_a_start:
                continue
            if not one.is_decision_of(self.schedulers):
                if not one.is_ahead or window.may_be_known(one):
                    learned.append(one)
                continue
            other = one.change.subject
            place = window.first_place(other.uid)
            if place is None or own_place is None:
                retried.append(one)
            elif (place < own_place) != (other.priority >= self.pod.priority) and other.priority != self.pod.priority:
                queued.append(one)
            elif (place < own_place) == one.is_ahead:
                in_order.append(one)
        self._in_order, self._queued, self._retried, self._learned = tuple(in_order), queued, retried, learned

    def _by_creation(self) -> _View:
        """The view after all pods that were created before, whatever their priorities."""
        own_place = self.window.first_place(self.pod.uid)
        return self._in_order if own_place is None else (*self._in_order, *self._decided_until(own_place))

    def _decided_until(self, place: int) -> _View:
        """What of `_queued` is different if the decisions on all pods before *place* were made, and no others."""
        return tuple(one for one in self._queued if (self._place(one) < place) == one.is_ahead)

    def _place(self, crossing: Crossing) -> int:
        return self.window.first_place(crossing.change.subject.uid) or 0

    def _views(self, bases: Sequence[_View], nodes: Collection[str]) -> Iterator[_View]:
        concerned = {self.node_name, *nodes} - {""}
        learned = [one for one in self._learned if self._concerns(one, concerned)]
        for base in bases:
            for last in learned[:_CUTS]:
                yield (*base, *self._lagging(last))
        places = sorted({self._place(one) + one.is_ahead for one in self._queued if self._concerns(one, concerned)})
        for place in places[-_CUTS:]:
            yield (*self._in_order, *self._decided_until(place))
        retried = [one for one in self._retried if self._concerns(one, concerned)]
        for base in bases:
            for one in retried[:_SINGLES]:
                yield (*base, one)

    def _lagging(self, last: Crossing) -> _View:
        """*last*, and what was shown between it and the decision by the same watch."""
        same_watch = [one for one in self._learned if one.kind == last.kind and one.is_ahead == last.is_ahead]
        return tuple(same_watch[: same_watch.index(last) + 1])

    def _concerns(self, crossing: Crossing, nodes: Collection[str]) -> bool:
        """Whether *crossing* is about one of *nodes*, a pod with a label of this one, or what any pod may need."""
        if not crossing.node_names.isdisjoint(nodes) or crossing.kind not in ("Pod", "Node"):
            return True
        if crossing.kind == "Node":
            return False
        return any(crossing.change.subject.labels.get(name) == value for name, value in self.pod.labels.items())

    def _step_by_step(self, view: _View, now: Distance) -> Steps:
        """Put one pod more on a node that is in the way, time and again; else take one from the chosen node."""
        for _ in range(_STEPS):
            step = self._next_step(view, now.nodes)
            if step is None or self._left <= 0:
                return None
            view = (*view, *(one for one in self._with_others(step) if one not in view))
            now = self._try(view)
            if now.gap == 0:
                return view
            yield
        return None

    def _with_others(self, step: Crossing) -> _View:
        """*step*, and what is in a view with it in any case."""
        if step in self._learned:
            return self._lagging(step)
        if step in self._queued:
            place = self._place(step)
            same_side = (one for one in self._queued if one.is_ahead == step.is_ahead)
            return tuple(one for one in same_side if one is step or (self._place(one) < place) == step.is_ahead)
        return (step,)

    def _next_step(self, view: _View, in_the_way: Collection[str]) -> Crossing | None:
        left = [one for one in (*self._learned, *self._retried, *self._queued) if one not in view]
        left.sort(key=lambda one: one.seconds)
        loads = next((one for one in left if one.loaded in in_the_way), None)
        if loads is not None or not self.node_name:
            return loads
        return next((one for one in left if one.relieved == self.node_name), None)

    def _smallest(self, view: _View) -> Steps:
        """What explains the decision of *view*, without changes that are not needed, as far as that is found out."""
        kept, size = list(view), (len(view) + 1) // 2
        self._left = _PRUNING
        while size and len(kept) > 1 and self._left > 0:
            begin = 0
            while begin < len(kept) and len(kept) > 1 and self._left > 0:
                without = [*kept[:begin], *kept[begin + size :]]
                if without and self._try(tuple(without)).gap == 0:
                    kept = without
                else:
                    begin += size
                yield
            size //= 2
        return tuple(kept)
