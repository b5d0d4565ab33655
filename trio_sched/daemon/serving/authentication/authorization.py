"""Who may do what: administrators everything, everybody the health checks; the API server decides about the rest."""

from __future__ import annotations

import hashlib
import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import trio
from attrs import define, field, frozen
from msgspec import Struct

from trio_sched.daemon.serving.authentication.expiring_cache import ExpiringCache
from trio_sched.daemon.serving.authentication.reviews import ReviewClient
from trio_sched.daemon.serving.authentication.users import ANONYMOUS, User
from trio_sched.daemon.serving.errors import ReviewFailed
from trio_sched.daemon.serving.limits import (
    LOG_INTERVAL_SECONDS,
    MAX_ANONYMOUS_REVIEWS,
    MAX_CACHED_ACCESS_BYTES,
    MAX_CACHED_REVIEWS,
    MAX_REVIEWS_UNDER_WAY,
    REVIEW_SECONDS,
)

log = logging.getLogger(__name__)

_ADMINISTRATORS: Final = "system:masters"
_TARGET: Final = f"/apis/authorization.k8s.io/v1/subjectaccessreviews?timeout={REVIEW_SECONDS:g}s"


class _Status(Struct, frozen=True):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _AccessReview(Struct, frozen=True):
    status: _Status


@frozen
class Verdict:
    """Whether a request is allowed, and what the API server says about it."""

    allowed: bool
    reason: str = ""
    denied: bool = False
    """The API server forbids it; else it merely does not allow it."""

    @property
    def label(self) -> str:
        """What it is called in metrics."""
        return "allowed" if self.allowed else "denied" if self.denied else "no-opinion"


@define(eq=False)
class AlwaysAllowed:
    """Paths that everybody may use."""

    _exact: frozenset[str]
    _prefixes: tuple[str, ...]

    @classmethod
    def of(cls, paths: Iterable[str]) -> AlwaysAllowed:
        """*paths* as flags say them: exact, or prefixes that end in ``*``; a slash in front does not matter."""
        stripped = [path.removeprefix("/") for path in paths]
        prefixes = tuple(path[:-1] for path in stripped if path.endswith("*"))
        return cls(frozenset(path for path in stripped if not path.endswith("*")), prefixes)

    def __contains__(self, path: str) -> bool:
        stripped = path.removeprefix("/")
        return stripped in self._exact or stripped.startswith(self._prefixes)


@define(eq=False, kw_only=True)
class Authorization:
    """Decides about users and paths; what the API server says counts for a while."""

    always_allowed: AlwaysAllowed
    reviews: ReviewClient | None = None
    """None: what is not allowed by itself is forbidden."""
    allowed_ttl_seconds: float = 10.0
    denied_ttl_seconds: float = 10.0
    _cache: ExpiringCache[bytes, _Status] = field(init=False, factory=lambda: ExpiringCache(MAX_CACHED_REVIEWS))
    _under_way: Counter[bool] = field(init=False, factory=Counter)
    """How many reviews, by whether they are for requests without credentials."""
    _logged_at: float = field(init=False, default=-math.inf)

    async def judge(self, user: User, verb: str, path: str) -> Verdict:
        """Whether *user* may do *verb* (``get``) on *path*.

        Raises:
            ReviewFailed: the API server could not be asked; that is no.
        """
        if _ADMINISTRATORS in user.groups or path in self.always_allowed:
            return Verdict(True)
        if self.reviews is None:
            return Verdict(False)
        spec = _spec(user, verb, path)
        encoded = msgspec.json.encode(spec)
        key = hashlib.blake2b(encoded).digest()  # anyone can send thousands of long paths
        status = self._cache.get(key)
        if status is None:
            with self._room(is_anonymous=user.name == ANONYMOUS.name):
                status = await self._review(self.reviews, spec)
            if len(encoded) < MAX_CACHED_ACCESS_BYTES:
                self._cache.put(key, status, self.allowed_ttl_seconds if status.allowed else self.denied_ttl_seconds)
        if status.denied and status.allowed:
            raise ReviewFailed("webhook subject access review returned both allow and deny response")
        return Verdict(status.allowed, status.reason, status.denied)

    @contextmanager
    def _room(self, *, is_anonymous: bool) -> Iterator[None]:
        """Count a review inside the block.

        Raises:
            ReviewFailed: too many are under way.
        """
        limit = MAX_ANONYMOUS_REVIEWS if is_anonymous else MAX_REVIEWS_UNDER_WAY
        if self._under_way[is_anonymous] >= limit:
            raise ReviewFailed("too many access reviews are under way")
        self._under_way[is_anonymous] += 1
        try:
            yield
        finally:
            self._under_way[is_anonymous] -= 1

    async def _review(self, reviews: ReviewClient, spec: dict[str, Any]) -> _Status:
        review = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec}
        try:
            answer: _AccessReview = await reviews.create(_TARGET, review, _AccessReview)
        except ReviewFailed as error:
            self._log(error)
            raise
        return answer.status

    def _log(self, error: ReviewFailed) -> None:
        now = trio.current_time()
        if now - self._logged_at >= LOG_INTERVAL_SECONDS:
            self._logged_at = now
            log.error("Failed to make webhook authorizer request: %s", error)


def _spec(user: User, verb: str, path: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"nonResourceAttributes": {"path": path, "verb": verb}}
    if user.name:
        spec["user"] = user.name
    if user.groups:
        spec["groups"] = user.groups
    if user.extra:
        spec["extra"] = user.extra
    if user.uid:
        spec["uid"] = user.uid
    return spec
