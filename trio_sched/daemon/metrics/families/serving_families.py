"""The families of authentication and authorization of requests to this process."""

from __future__ import annotations

from typing import Final

from trio_sched.daemon.metrics.families.families import Family, Type
from trio_sched.daemon.metrics.recorder import ATTEMPT_BUCKETS, EXPIRATION_BUCKETS, REVIEW_BUCKETS, TOKEN_BUCKETS

SERVING_FAMILIES: Final = (
    Family(
        "apiserver_client_certificate_expiration_seconds",
        Type.HISTOGRAM,
        "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
        buckets=EXPIRATION_BUCKETS,
    ),
    Family(
        "apiserver_delegated_authn_request_duration_seconds",
        Type.HISTOGRAM,
        "Request latency in seconds. Broken down by status code.",
        ("code",),
        buckets=REVIEW_BUCKETS,
    ),
    Family(
        "apiserver_delegated_authn_request_total",
        Type.COUNTER,
        "Number of HTTP requests partitioned by status code.",
        ("code",),
    ),
    Family(
        "apiserver_delegated_authz_request_duration_seconds",
        Type.HISTOGRAM,
        "Request latency in seconds. Broken down by status code.",
        ("code",),
        buckets=REVIEW_BUCKETS,
    ),
    Family(
        "apiserver_delegated_authz_request_total",
        Type.COUNTER,
        "Number of HTTP requests partitioned by status code.",
        ("code",),
    ),
    Family(
        "authenticated_user_requests",
        Type.COUNTER,
        "Counter of authenticated requests broken out by username.",
        ("username",),
    ),
    Family("authentication_attempts", Type.COUNTER, "Counter of authenticated attempts.", ("result",)),
    Family(
        "authentication_duration_seconds",
        Type.HISTOGRAM,
        "Authentication duration in seconds broken out by result.",
        ("result",),
        buckets=ATTEMPT_BUCKETS,
    ),
    Family("authentication_token_cache_active_fetch_count", Type.GAUGE, "", ("status",)),
    Family("authentication_token_cache_fetch_total", Type.COUNTER, "", ("status",)),
    Family(
        "authentication_token_cache_request_duration_seconds",
        Type.HISTOGRAM,
        "",
        ("status",),
        buckets=TOKEN_BUCKETS,
    ),
    Family("authentication_token_cache_request_total", Type.COUNTER, "", ("status",)),
    Family(
        "authorization_attempts_total",
        Type.COUNTER,
        "Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
        ("result",),
    ),
    Family(
        "authorization_duration_seconds",
        Type.HISTOGRAM,
        "Authorization duration in seconds broken out by result.",
        ("result",),
        buckets=ATTEMPT_BUCKETS,
    ),
)
