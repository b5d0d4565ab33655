"""What the engine measures about its cycles; the daemon gives it a clock, and names what was measured.

Extension points are timed in every cycle, single plugins in a sample of the cycles: timing these costs so much more.

A decision from the signature cache calls plugins only for nodes that have changed, filters and scores in one go. It
counts once at each of PreFilter, Filter, PreScore and Score, so that the counts are attempts; its whole duration counts
at Filter, and the others take no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from typing import Final

from attrs import define, field

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.histogram import Histogram, exponential_buckets
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_times import PLUGIN_BUCKETS, Clock, PluginTimes, TimedHooks
from trio_sched.engine.hooks.status_labels import ERROR, SKIPPED, SUCCESS
from trio_sched.plugin_api.status import Code, Status

POINT_BUCKETS: Final = exponential_buckets(0.0001, 2, 12)

CACHE_BUCKETS: Final = exponential_buckets(0.00001, 2, 12)
PLACEMENT_BUCKETS: Final = exponential_buckets(0.001, 2, 15)
_FINE_BUCKETS: Final = tuple(sorted({*POINT_BUCKETS, *CACHE_BUCKETS}))

SAMPLE_GAP: Final = 10
"""One of so many cycles has its plugins timed."""
MAX_SKIP_SETS: Final = 1024
"""Different sets of skipped plugins that are counted before they are added up by plugin."""


Skipped = tuple[frozenset[str], frozenset[str] | None]
"""Plugins skipped at Filter, and at Score; None if no nodes were scored."""


@define(eq=False)
class PointTimer:
    """One run of one extension point; *status* is what came of it."""

    status: str = SUCCESS


@define(eq=False, kw_only=True)
class ProfileMeasurements:
    """What is measured about the cycles of one profile."""

    clock: Clock
    sample_gap: Callable[[], int]
    in_decision: TimedHooks
    """The hooks of a decision: from pre_filter to normalize_score."""
    after_decision: TimedHooks
    """Those from reserve to pre_bind_pre_flight, and unreserve."""
    plugins: dict[str, tuple[str, ...]] = field(factory=dict)
    """PreFilter, Filter, PreScore and Score → their plugins, in order."""
    points: dict[tuple[str, str], Histogram] = field(factory=dict)
    """(extension point, status) → seconds."""
    evaluations: Counter[tuple[str, str]] = field(factory=Counter)
    """(extension point, plugin) → attempts, as of the last `fold`."""
    cached_decisions: int = 0
    """Decisions from the signature cache, as of the last `fold`."""
    plain_decisions: int = 0
    """Decisions by plain evaluation although the pod has a signature."""
    unsigned_decisions: int = 0
    """Decisions about pods without a signature."""
    cache_seconds: Histogram = field(factory=lambda: Histogram(CACHE_BUCKETS))
    """The durations of decisions from the signature cache, as of the last `fold`."""
    flushed: Counter[str] = field(factory=Counter)
    """Why results were dropped from the signature cache → how often."""
    store_seconds: Histogram = field(factory=lambda: Histogram(CACHE_BUCKETS))
    """How long it took to store the results of new signatures in the cache."""
    rescored: Histogram | None = None
    """How long it took to evaluate nodes again that had changed since the decision before; None if not measured."""
    generated_placements: int = 0
    """Placements of pod groups that were to be tried."""
    placements: dict[str, Histogram] = field(factory=dict)
    """``feasible`` and ``infeasible`` → how long it took to find out that a group fits in a placement, or not."""
    _cached: dict[Skipped, int] = field(factory=dict, init=False)
    """What was skipped → decisions from the cache."""
    _cached_seconds: Histogram = field(factory=lambda: Histogram(_FINE_BUCKETS), init=False)
    """Their durations, in buckets that make up those of both families that show them."""
    _filtered: Counter[frozenset[str]] = field(factory=Counter, init=False)
    """Plugins skipped at Filter → plain evaluations."""
    _scored: Counter[frozenset[str]] = field(factory=Counter, init=False)
    """Plugins skipped at Score → plain evaluations."""
    # The outcomes of nearly every pod, without looking them up.
    reserved: Histogram = field(init=False)
    pre_flight_skipped: Histogram = field(init=False)
    bound: Histogram = field(init=False)
    nothing_to_pre_bind: int = 0
    """Pods for which PreBind was over at once; not in *points* before `fold`."""
    nothing_after_bind: int = 0
    """How often nothing was done at PostBind."""
    not_asked_to_permit: int = 0
    """How often nobody was asked to permit, because no plugin has that hook."""
    _until_sample: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reserved = self.histogram("Reserve", SUCCESS)
        self.pre_flight_skipped = self.histogram("PreBindPreFlight", SKIPPED)
        self.bound = self.histogram("Bind", SUCCESS)
        self._until_sample = self.sample_gap()

    def histogram(self, point: str, status: str) -> Histogram:
        """The durations of *point* with *status*."""
        found = self.points.get((point, status))
        if found is None:
            found = self.points[point, status] = Histogram(POINT_BUCKETS)
        return found

    def observe(self, point: str, status: str, seconds: float) -> None:
        """An extension point was run."""
        self.histogram(point, status).observe(seconds)

    @contextmanager
    def point(self, point: str) -> Generator[PointTimer]:
        """Time what is in the block as one run of *point*; a hook that fails makes it an Error."""
        timer, began = PointTimer(), self.clock()
        try:
            yield timer
        except HookFailed:
            timer.status = ERROR
            raise
        finally:
            self.observe(point, timer.status, self.clock() - began)

    def placement_tried(self, *, is_feasible: bool, seconds: float) -> None:
        """A pod group was tried in a placement."""
        histogram = self.placements.setdefault(
            "feasible" if is_feasible else "infeasible", Histogram(PLACEMENT_BUCKETS)
        )
        histogram.observe(seconds)

    # --- decisions --------------------------------------------------------------------------------------------------

    def decided_from_cache(
        self, seconds: float, skip_filter: frozenset[str], skip_score: frozenset[str] | None
    ) -> None:
        """A decision came from the signature cache.

        Args:
            seconds: what it took.
            skip_filter: plugins skipped at Filter.
            skip_score: plugins skipped at Score; None if no nodes were scored.
        """
        self._cached_seconds.observe(seconds)
        skipped = skip_filter, skip_score
        try:
            self._cached[skipped] += 1
        except KeyError:
            self._cached[skipped] = 1
            if len(self._cached) > MAX_SKIP_SETS:
                self.fold()

    def filtered(self, skipped: frozenset[str]) -> None:
        """All pre_filters were called, and the filters of all plugins but *skipped*."""
        self._filtered[skipped] += 1
        if len(self._filtered) > MAX_SKIP_SETS:
            self.fold()

    def scored(self, skipped: frozenset[str]) -> None:
        """All pre_scores were called, and the scores of all plugins but *skipped*."""
        self._scored[skipped] += 1
        if len(self._scored) > MAX_SKIP_SETS:
            self.fold()

    def rejected_by_pre_filter(self, status: Status) -> None:
        """The pre_filters were called up to the one that ended the cycle."""
        plugins = self.plugins.get("PreFilter", ())
        if status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE and status.plugin in plugins:
            plugins = plugins[: plugins.index(status.plugin) + 1]
        for plugin in plugins:
            self.evaluations["PreFilter", plugin] += 1

    def fold(self) -> None:
        """Add up by extension point and plugin what was counted in shorter ways; to be called before reading."""
        for pre, point, counted in (("PreFilter", "Filter", self._filtered), ("PreScore", "Score", self._scored)):
            for skipped, count in counted.items():
                self._count(pre, frozenset(), count)
                self._count(point, skipped, count)
            counted.clear()
        cached = scored = 0
        for (skip_filter, skip_score), count in self._cached.items():
            cached += count
            self._count("PreFilter", frozenset(), count)
            self._count("Filter", skip_filter, count)
            if skip_score is not None:
                scored += count
                self._count("PreScore", frozenset(), count)
                self._count("Score", skip_score, count)
        self._cached.clear()
        self.cached_decisions += cached
        for shown in (self.cache_seconds, self.histogram("Filter", SUCCESS)):
            shown.add_finer(self._cached_seconds)
        self._cached_seconds.reset()
        for point, count in (
            ("PreFilter", cached),
            ("PreScore", scored),
            ("Score", scored),
            ("Permit", self.not_asked_to_permit),
            ("PreBind", self.nothing_to_pre_bind),
            ("PostBind", self.nothing_after_bind),
        ):
            if count:
                self.histogram(point, SUCCESS).observe_many(0.0, count)
        self.not_asked_to_permit = self.nothing_to_pre_bind = self.nothing_after_bind = 0

    def _count(self, point: str, skipped: frozenset[str], count: int) -> None:
        for plugin in self.plugins.get(point, ()):
            if plugin not in skipped:
                self.evaluations[point, plugin] += count

    def is_sampled(self) -> bool:
        """Whether the cycle that begins now is one of those whose plugins are timed."""
        self._until_sample -= 1
        if self._until_sample > 0:
            return False
        self._until_sample = self.sample_gap()
        return True

    def reset(self) -> None:
        """Forget everything."""
        self.fold()
        self.evaluations.clear()
        self.cached_decisions = self.plain_decisions = self.unsigned_decisions = 0
        self.flushed.clear()
        self.generated_placements = 0
        self.placements.clear()
        self.cache_seconds.reset()
        self.store_seconds.reset()
        if self.rescored is not None:
            self.rescored.reset()
        for histogram in self.points.values():
            histogram.reset()


@define(eq=False)
class Measurements:
    """What is measured about all cycles; without a clock every duration is 0."""

    clock: Clock = field(default=lambda: 0.0)
    sample_gap: Callable[[], int] = field(default=lambda: SAMPLE_GAP)
    """How many cycles on the next one is sampled."""
    has_rescoring: bool = False
    """Whether it is measured how nodes are scored again in the signature cache, and failures there have own reasons."""
    profiles: dict[str, ProfileMeasurements] = field(factory=dict)
    hints: dict[tuple[str, str, str], Histogram] = field(factory=dict)
    """(plugin, event, hint) → seconds."""
    post_filters: int = 0
    """Pods for which post_filter was called: attempts to preempt."""
    plugin_times: PluginTimes = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.plugin_times = PluginTimes(self.clock)

    def add_profile(
        self,
        name: str,
        *,
        in_decision: Iterable[BoundHook] = (),
        after_decision: Iterable[BoundHook] = (),
        plugins: dict[str, tuple[str, ...]] | None = None,
    ) -> ProfileMeasurements:
        """Measure the profile *name*; what one of that name has counted before goes on. See `ProfileMeasurements`."""
        fresh = ProfileMeasurements(
            clock=self.clock,
            sample_gap=self.sample_gap,
            in_decision=TimedHooks(in_decision, self.plugin_times),
            after_decision=TimedHooks(after_decision, self.plugin_times),
            plugins=plugins or {},
            rescored=Histogram(CACHE_BUCKETS) if self.has_rescoring else None,
        )
        found = self.profiles.setdefault(name, fresh)
        if found is not fresh:
            found.fold()  # while it is known which plugins were not skipped
            found.in_decision, found.after_decision, found.plugins = (
                fresh.in_decision,
                fresh.after_decision,
                fresh.plugins,
            )
        return found

    def keep_profiles(self, names: Collection[str]) -> None:
        """Forget the profiles that are not among *names*."""
        for gone in self.profiles.keys() - set(names):
            del self.profiles[gone]

    def observe_hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A hint function has returned."""
        key = plugin, event, hint
        histogram = self.hints.get(key)
        if histogram is None:
            histogram = self.hints[key] = Histogram(PLUGIN_BUCKETS)
        histogram.observe(seconds)

    def reset(self) -> None:
        """Forget everything."""
        self.hints.clear()
        self.plugin_times.reset()
        self.post_filters = 0
        for profile in self.profiles.values():
            profile.reset()
