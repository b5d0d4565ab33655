"""What the daemon observes about attempts, events, preemptions and its lease; `scheduler_series` names it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from attrs import define, field

from trio_sched.engine.hooks.histogram import Histogram, exponential_buckets
from trio_sched.engine.hooks.measurements import POINT_BUCKETS
from trio_sched.engine.queue.queued_pod import QueuedPodInfo

ATTEMPT_BUCKETS: Final = exponential_buckets(0.001, 2, 15)
"""The buckets of attempts, and of other histograms with the same ones; the others are below."""
EXECUTION_BUCKETS: Final = exponential_buckets(0.001, 2, 16)
SLI_BUCKETS: Final = exponential_buckets(0.01, 2, 20)
REVIEW_BUCKETS: Final = (0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0)
TOKEN_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BINDING_CONDITION_BUCKETS: Final = exponential_buckets(0.1, 2, 14)
EXPIRATION_BUCKETS: Final = (
    0.0,
    1800.0,
    3600.0,
    7200.0,
    21600.0,
    43200.0,
    86400.0,
    172800.0,
    345600.0,
    604800.0,
    2592000.0,
    7776000.0,
    15552000.0,
    31104000.0,
)
INFORMER_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MAX_ATTEMPTS_LABEL: Final = 15
"""Pods with so many attempts or more are one series, ``15+``."""
_ATTEMPTS: Final = (*map(str, range(MAX_ATTEMPTS_LABEL)), f"{MAX_ATTEMPTS_LABEL}+")


@define(eq=False)
class HistogramsBy:
    """Histograms with the same buckets, one per key; made when a key is first used."""

    bounds: tuple[float, ...]
    labels: tuple[str, ...]
    """The names of the labels whose values a key has, in its order."""
    by_key: dict[tuple[str, ...], Histogram] = field(factory=dict)

    def observe(self, value: float, *key: str) -> None:
        """Count *value* under *key*."""
        found = self.by_key.get(key)
        if found is None:
            found = self.by_key[key] = Histogram(self.bounds)
        found.observe(value)

    def clear(self) -> None:
        """Forget everything."""
        self.by_key.clear()


@define(eq=False)
class MetricRecorder:
    """Counts; times are those of trio's clock."""

    attempts: HistogramsBy = field(factory=lambda: HistogramsBy(ATTEMPT_BUCKETS, ("result", "profile")))
    """Seconds of the attempts."""
    algorithm: Histogram = field(factory=lambda: Histogram(ATTEMPT_BUCKETS))
    group_attempts: HistogramsBy = field(factory=lambda: HistogramsBy(ATTEMPT_BUCKETS, ("result", "profile")))
    """Seconds of the attempts to schedule pod groups."""
    group_algorithm: Histogram = field(factory=lambda: Histogram(ATTEMPT_BUCKETS))
    attempts_until_bound: Histogram = field(factory=lambda: Histogram(exponential_buckets(1, 2, 5)))
    sli: HistogramsBy = field(factory=lambda: HistogramsBy(SLI_BUCKETS, ("attempts",)))
    """Seconds from the queue to the bind."""
    permit_waits: HistogramsBy = field(factory=lambda: HistogramsBy(ATTEMPT_BUCKETS, ("result",)))
    event_handling: HistogramsBy = field(factory=lambda: HistogramsBy(POINT_BUCKETS, ("event",)))
    informer_processing: HistogramsBy = field(
        factory=lambda: HistogramsBy(INFORMER_BUCKETS, ("group", "version", "resource"))
    )
    """Seconds that it took to handle what a watch delivered at once."""
    victims: Histogram = field(factory=lambda: Histogram(exponential_buckets(1, 2, 7)))
    preemptions: HistogramsBy = field(factory=lambda: HistogramsBy(SLI_BUCKETS, ("result",)))
    """Seconds that the deletion of the victims took in the background."""
    executions: HistogramsBy = field(factory=lambda: HistogramsBy(EXECUTION_BUCKETS, ("preemptor", "result")))
    """Seconds that the deletion of the victims took, in the background or not, by the kind of the preemptor."""
    evaluations: HistogramsBy = field(factory=lambda: HistogramsBy(EXECUTION_BUCKETS, ("preemptor", "result")))
    """Seconds that it took to find victims, or that there are none, by the kind of the preemptor."""
    pdb_violations: Counter[tuple[str, ...]] = field(factory=Counter)
    """(kind of the preemptor,) → evictions that violate a budget."""
    group_disruptions: HistogramsBy = field(factory=lambda: HistogramsBy(exponential_buckets(1, 2, 11), ("preemptor",)))
    """Pods of groups that one preemptor evicts, those of a group that leaves as a whole being one."""
    workload_preemptions: Counter[tuple[str, ...]] = field(factory=Counter)
    """(result,) → calls of pod_group_post_filter."""
    workload_victims: Histogram = field(factory=lambda: Histogram(exponential_buckets(1, 2, 11)))
    loop_lag: Histogram = field(factory=lambda: Histogram(ATTEMPT_BUCKETS))
    """How much later than due the event loop came round."""
    claim_creates: Counter[tuple[str, ...]] = field(factory=Counter)
    """(status,) → claims for extended resources that were created, or were to be."""
    binding_conditions: Counter[tuple[str, ...]] = field(factory=Counter)
    """(driver, profile, status) → devices whose binding conditions were waited for."""
    binding_condition_waits: HistogramsBy = field(
        factory=lambda: HistogramsBy(BINDING_CONDITION_BUCKETS, ("driver", "profile", "status"))
    )
    cache_errors: int = 0
    """Events from the API server that did not fit what the cache held."""
    slow_renewals: int = 0
    """Renewals of the lease that had to read it first."""
    leads: bool | None = None
    """Whether this process holds the lease; None without leader election."""

    @property
    def of_plugins(self) -> dict[str, tuple[Counter[tuple[str, ...]] | None, HistogramsBy | None]]:
        """Name without ``scheduler_`` → where plugins count."""
        return {
            "resourceclaim_creates_total": (self.claim_creates, None),
            "dra_bindingconditions_allocations_total": (self.binding_conditions, None),
            "dra_bindingconditions_wait_duration_seconds": (None, self.binding_condition_waits),
        }

    def bound(self, info: QueuedPodInfo, now: float) -> None:
        """The pod is bound."""
        self.attempts.observe(now - info.attempt_began, "scheduled", info.pod.spec.scheduler_name)
        attempts = info.attempts
        self.attempts_until_bound.observe(attempts)
        if info.initial_attempt_timestamp is not None:
            self.sli.observe(now - info.initial_attempt_timestamp, _ATTEMPTS[min(attempts, MAX_ATTEMPTS_LABEL)])

    def not_scheduled(self, info: QueuedPodInfo, now: float, *, rejected: bool) -> None:
        """The attempt failed: plugins rejected the pod, or there was an error."""
        result = "unschedulable" if rejected else "error"
        self.attempts.observe(now - info.attempt_began, result, info.pod.spec.scheduler_name)

    def count_attempts(self) -> int:
        """How many attempts there were, whatever their results."""
        return sum(histogram.count for histogram in self.attempts.by_key.values())

    def reset(self) -> None:
        """Forget what was counted."""
        for histograms in (
            self.attempts,
            self.group_attempts,
            self.sli,
            self.permit_waits,
            self.event_handling,
            self.informer_processing,
            self.preemptions,
            self.executions,
            self.evaluations,
            self.group_disruptions,
            self.binding_condition_waits,
        ):
            histograms.clear()
        self.claim_creates.clear()
        self.workload_preemptions.clear()
        self.pdb_violations.clear()
        self.binding_conditions.clear()
