"""Asks an API server who a token belongs to and what a user may do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec
import trio
from attrs import define

from trio_sched.daemon.serving.errors import ReviewFailed
from trio_sched.daemon.serving.limits import (
    REVIEW_RETRY_FACTOR,
    REVIEW_RETRY_JITTER,
    REVIEW_RETRY_SECONDS,
    REVIEW_TOTAL_SECONDS,
    REVIEW_TRIES,
)
from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.errors import ApiError, ConnectionFailed, KubeClientError

_RETRIED_CODES = frozenset({429, 500, 504})
_NO_RESPONSE: Final = "<error>"

ObserveReview = Callable[[str, float], None]
"""Is told the HTTP status of every response, or ``<error>``, and how many seconds it took."""


@define(eq=False)
class ReviewClient:
    """Creates reviews, and tries again after failures that pass."""

    client: KubeClient
    random: Random
    observe: ObserveReview = lambda _code, _seconds: None

    async def create(self, target: str, review: Any, response_type: type[msgspec.Struct]) -> Any:
        """Send *review*; returns the response as *response_type*.

        Raises:
            ReviewFailed: there is no usable response.
        """
        try:
            body = msgspec.json.encode(review)
        except UnicodeEncodeError as error:  # half of a surrogate pair
            raise ReviewFailed("the review is no text") from error
        with trio.move_on_after(REVIEW_TOTAL_SECONDS):
            content = await self._post(target, body)
            try:
                return msgspec.json.decode(content, type=response_type)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise ReviewFailed(f"the API server's response to a review is none: {error}") from error
        raise ReviewFailed("context deadline exceeded")

    async def _post(self, target: str, body: bytes) -> bytes:
        pause = REVIEW_RETRY_SECONDS
        for attempt in range(1, REVIEW_TRIES + 1):
            try:
                return await self._post_once(target.encode(), body)
            except KubeClientError as error:
                if attempt == REVIEW_TRIES or not _may_pass(error):
                    raise ReviewFailed(self._describe(target, error)) from error
            await trio.sleep(pause * (1 + REVIEW_RETRY_JITTER * self.random.random()))
            pause *= REVIEW_RETRY_FACTOR
        raise AssertionError("unreachable: the last try returns or raises")

    async def _post_once(self, target: bytes, body: bytes) -> bytes:
        began, code = trio.current_time(), _NO_RESPONSE
        try:
            reply = await self.client.request(b"POST", target, headers=JSON, body=body)
            code = str(reply.status)
        finally:
            self.observe(code, trio.current_time() - began)
        self.client.check(b"POST", target, reply)
        return reply.body

    def _describe(self, target: str, error: KubeClientError) -> str:
        if isinstance(error, ConnectionFailed):
            return f'Post "{self.client.settings.server}{target}": {error.problem}'
        return str(error)


def _may_pass(error: KubeClientError) -> bool:
    """Whether another try may help: a connection that broke, or a server that has trouble."""
    if isinstance(error, ConnectionFailed):
        return error.may_have_reached_server and not error.timed_out
    return isinstance(error, ApiError) and error.code in _RETRIED_CODES
