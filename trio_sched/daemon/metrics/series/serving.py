"""What the serving code counts: authentication and authorization of requests, and health checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from attrs import define, field

from trio_sched.daemon.metrics.families.exposed import Series
from trio_sched.daemon.metrics.recorder import (
    ATTEMPT_BUCKETS,
    EXPIRATION_BUCKETS,
    REVIEW_BUCKETS,
    TOKEN_BUCKETS,
    HistogramsBy,
)
from trio_sched.engine.hooks.histogram import Histogram

_NAMED_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)
MAX_CHECKS: Final = 1000
"""Different health checks and outcomes that are counted."""
_STATUS_VALUES: Final = {"success": 1.0, "error": 0.0, "pending": -1.0}


@define(eq=False)
class ServingMetrics:
    """Counts; every method returns at once."""

    authentications: HistogramsBy = field(factory=lambda: HistogramsBy(ATTEMPT_BUCKETS, ("result",)))
    users: Counter[str] = field(factory=Counter)
    authorizations: HistogramsBy = field(factory=lambda: HistogramsBy(ATTEMPT_BUCKETS, ("result",)))
    token_requests: HistogramsBy = field(factory=lambda: HistogramsBy(TOKEN_BUCKETS, ("status",)))
    token_fetches: Counter[str] = field(factory=Counter)
    active_fetches: Counter[str] = field(factory=Counter)
    token_reviews: HistogramsBy = field(factory=lambda: HistogramsBy(REVIEW_BUCKETS, ("code",)))
    access_reviews: HistogramsBy = field(factory=lambda: HistogramsBy(REVIEW_BUCKETS, ("code",)))
    certificate_expirations: Histogram = field(factory=lambda: Histogram(EXPIRATION_BUCKETS))

    def authenticated(self, result: str, seconds: float) -> None:
        """Authentication of a request has ended with *result*: success, failure or error."""
        self.authentications.observe(seconds, result)

    def authenticated_user(self, name: str) -> None:
        """The request is one of this user, who is named only if that makes no difference between persons."""
        if name not in _NAMED_USERS:
            name = "email_id" if "@" in name else "other"
        self.users[name] += 1

    def client_certificate_shown(self, seconds_left: float) -> None:
        """A client has shown a certificate, good or bad, that is valid for so long."""
        self.certificate_expirations.observe(seconds_left)

    def token_looked_up(self, status: str, seconds: float) -> None:
        """A token was looked up, in the cache (*status* is hit) or by a review (miss); in whole milliseconds."""
        self.token_requests.observe(int(seconds * 1000) / 1000, status)

    def token_fetch_began(self, status: str) -> None:
        """A review of a token began (*status* is in_flight), or the wait for that of another request (blocked)."""
        self.active_fetches[status] += 1

    def token_fetch_ended(self, status: str) -> None:
        """The opposite of `token_fetch_began`."""
        self.active_fetches[status] -= 1

    def token_fetched(self, status: str) -> None:
        """A review of a token has ended: ok or error."""
        self.token_fetches[status] += 1

    def token_reviewed(self, code: str, seconds: float) -> None:
        """The API server has answered a TokenReview with an HTTP status, or *code* is ``<error>``."""
        self.token_reviews.observe(seconds, code)

    def authorized(self, result: str, seconds: float) -> None:
        """Authorization of a request has ended with *result*: allowed, denied, no-opinion or error."""
        self.authorizations.observe(seconds, result)

    def access_reviewed(self, code: str, seconds: float) -> None:
        """The API server has answered a SubjectAccessReview with an HTTP status, or *code* is ``<error>``."""
        self.access_reviews.observe(seconds, code)

    def reset(self) -> None:
        """Forget what was counted."""
        for histograms in (
            self.authentications,
            self.authorizations,
            self.token_requests,
            self.token_reviews,
            self.access_reviews,
        ):
            histograms.clear()
        self.users.clear()
        self.token_fetches.clear()

    def collect(self) -> Iterator[tuple[str, list[Series]]]:
        """Family → series."""
        yield "apiserver_client_certificate_expiration_seconds", [((), self.certificate_expirations)]
        yield "authenticated_user_requests", _counted(self.users)
        yield "authentication_token_cache_fetch_total", _counted(self.token_fetches)
        yield "authentication_token_cache_active_fetch_count", _counted(self.active_fetches)
        for total, seconds, histograms in (
            (
                "apiserver_delegated_authn_request_total",
                "apiserver_delegated_authn_request_duration_seconds",
                self.token_reviews,
            ),
            (
                "apiserver_delegated_authz_request_total",
                "apiserver_delegated_authz_request_duration_seconds",
                self.access_reviews,
            ),
            ("authentication_attempts", "authentication_duration_seconds", self.authentications),
            (
                "authentication_token_cache_request_total",
                "authentication_token_cache_request_duration_seconds",
                self.token_requests,
            ),
            ("authorization_attempts_total", "authorization_duration_seconds", self.authorizations),
        ):
            yield total, [(key, float(one.count)) for key, one in histograms.by_key.items()]
            yield seconds, list(histograms.by_key.items())


@define(eq=False)
class HealthChecks:
    """The outcomes of health checks, for ``/metrics/slis``."""

    last: dict[tuple[str, str], str] = field(factory=dict)
    """(name, type) → status."""
    counts: Counter[tuple[str, str, str]] = field(factory=Counter)
    """(name, status, type) → checks."""

    def record(self, type_: str, name: str, status: str) -> None:
        """A check was made.

        Args:
            type_: healthz, livez or readyz.
            name: of the check.
            status: success, error or pending.
        """
        if len(self.counts) < MAX_CHECKS or (name, status, type_) in self.counts:
            self.last[name, type_] = status
            self.counts[name, status, type_] += 1

    def reset(self) -> None:
        """Forget everything."""
        self.last.clear()
        self.counts.clear()

    def collect(self) -> Iterator[tuple[str, list[Series]]]:
        """Family → series."""
        yield "kubernetes_healthcheck", [(key, _STATUS_VALUES.get(status, 0.0)) for key, status in self.last.items()]
        yield "kubernetes_healthchecks_total", [(key, float(count)) for key, count in self.counts.items()]


def _counted(counter: Counter[str]) -> list[Series]:
    return [((key,), float(count)) for key, count in counter.items()]
