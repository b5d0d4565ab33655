"""Bearer tokens: found in a request, and reviewed by the API server."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import math
import os
from collections.abc import Mapping
from typing import Any, Final

import trio
from attrs import define, field
from msgspec import Struct

from trio_sched.daemon.metrics.series.serving import ServingMetrics
from trio_sched.daemon.serving.authentication.expiring_cache import ExpiringCache
from trio_sched.daemon.serving.authentication.reviews import ReviewClient
from trio_sched.daemon.serving.authentication.users import User
from trio_sched.daemon.serving.errors import NotAuthenticated, ReviewFailed
from trio_sched.daemon.serving.limits import (
    LOG_INTERVAL_SECONDS,
    MAX_CACHED_REVIEWS,
    MAX_KNOWN_TOKENS,
    MAX_REVIEWS_UNDER_WAY,
)
from trio_sched.daemon.serving.messages import Request

log = logging.getLogger(__name__)

_TARGET: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_PROTOCOL_PREFIX: Final = "base64url.bearer.authorization.k8s.io."
_INVALID: Final = "invalid bearer token"


class _UserInfo(Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _Status(Struct, frozen=True):
    authenticated: bool = False
    user: _UserInfo = _UserInfo()
    error: str = ""


class _TokenReview(Struct, frozen=True):
    status: _Status


def token_in(request: Request) -> str:
    """The token in the ``Authorization`` header or a websocket's protocols; empty if there is none.

    Raises:
        NotAuthenticated: the protocols hold something that is no token.
    """
    words = request.header("authorization").strip().split(" ", 2)
    if len(words) > 1 and words[0].lower() == "bearer" and words[1]:
        return words[1]
    return _token_in_protocols(request) if request.is_websocket else ""


def _token_in_protocols(request: Request) -> str:
    found, others = [], 0
    for name, value in request.headers:
        if name == "sec-websocket-protocol":
            for protocol in map(str.strip, value.split(",")):
                if protocol.startswith(_PROTOCOL_PREFIX):
                    found.append(protocol.removeprefix(_PROTOCOL_PREFIX))
                else:
                    others += 1
    if not found:
        return ""
    if len(found) > 1:
        raise NotAuthenticated("multiple base64.bearer.authorization tokens specified")
    try:
        if "=" in found[0]:
            raise ValueError
        padding = "=" * (-len(found[0]) % 4)
        token = base64.b64decode(found[0] + padding, altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error) as error:
        raise NotAuthenticated("invalid base64.bearer.authorization token encoding") from error
    if token and not others:
        raise NotAuthenticated("missing additional subprotocol")
    return token


@define(eq=False)
class _Lookup:
    """A review that is under way, for everybody who presents the same token."""

    done: trio.Event = field(factory=trio.Event)
    user: User | None = None
    problem: str = ""


@define(eq=False)
class TokenAuthenticator:
    """Has tokens reviewed; what the review says counts for a while, for good and bad tokens alike."""

    reviews: ReviewClient
    ttl_seconds: float
    nursery: trio.Nursery
    """Runs the reviews: those who wait for one may give up."""
    metrics: ServingMetrics = field(factory=ServingMetrics)
    _secret: bytes = field(init=False, factory=lambda: os.urandom(32))
    _cache: ExpiringCache[bytes, _Lookup] = field(init=False, factory=lambda: ExpiringCache(MAX_CACHED_REVIEWS))
    _known_good: ExpiringCache[bytes, bool] = field(init=False, factory=lambda: ExpiringCache(MAX_KNOWN_TOKENS))
    _under_way: dict[bytes, _Lookup] = field(init=False, factory=dict)
    _logged_at: float = field(init=False, default=-math.inf)

    async def authenticate(self, request: Request) -> User | None:
        """The user of the token in *request*; None if there is no token.

        Raises:
            NotAuthenticated: the token is not good, or could not be reviewed.
        """
        token = token_in(request)
        if not token:
            return None
        # Neither tokens nor their plain hashes are kept in memory for longer than their review takes.
        key = hmac.digest(self._secret, token.encode("utf-8", "replace"), hashlib.sha256)
        began = trio.current_time()
        lookup = self._cache.get(key)
        if lookup is not None:
            self.metrics.token_looked_up("hit", trio.current_time() - began)
        else:
            self.metrics.token_fetch_began("blocked")
            try:
                lookup = await self._reviewed(key, token)
            finally:
                self.metrics.token_looked_up("miss", trio.current_time() - began)
                self.metrics.token_fetch_ended("blocked")
        if lookup.user is None:
            raise NotAuthenticated(lookup.problem or _INVALID)
        return lookup.user

    async def _reviewed(self, key: bytes, token: str) -> _Lookup:
        lookup = self._under_way.get(key)
        if lookup is None:
            if len(self._under_way) >= MAX_REVIEWS_UNDER_WAY and self._known_good.get(key) is None:
                raise NotAuthenticated("too many tokens are being reviewed")
            lookup = self._under_way[key] = _Lookup()
            self.nursery.start_soon(self._look_up, key, token, lookup)
        await lookup.done.wait()
        return lookup

    async def _look_up(self, key: bytes, token: str, lookup: _Lookup) -> None:
        self.metrics.token_fetch_began("in_flight")
        try:
            status = await self._review(token)
            if status.authenticated:
                lookup.user = _user(status.user)
                self._known_good.put(key, True, math.inf)
            else:
                lookup.problem = status.error
            if not lookup.problem:  # an error may pass, for instance in one of several authenticators behind the review
                self._cache.put(key, lookup, self.ttl_seconds)
        except ReviewFailed as error:
            lookup.problem = str(error)
            self._log(error)
        except Exception as error:  # this task is nobody's: what it raises would end the process
            lookup.problem = type(error).__name__
            log.error("a token cannot be reviewed: %s", lookup.problem)
        finally:
            del self._under_way[key]
            self.metrics.token_fetched("error" if lookup.problem else "ok")
            self.metrics.token_fetch_ended("in_flight")
            lookup.done.set()

    def _log(self, error: ReviewFailed) -> None:
        now = trio.current_time()
        if now - self._logged_at >= LOG_INTERVAL_SECONDS:
            self._logged_at = now
            log.warning("Unable to authenticate requests: tokens cannot be reviewed", extra={"err": str(error)})

    async def _review(self, token: str) -> _Status:
        review: Mapping[str, Any] = {
            "kind": "TokenReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "spec": {"token": token},
        }
        answer: _TokenReview = await self.reviews.create(_TARGET, review, _TokenReview)
        return answer.status


def _user(info: _UserInfo) -> User:
    return User(name=info.username, uid=info.uid, groups=info.groups or (), extra=info.extra or {})
