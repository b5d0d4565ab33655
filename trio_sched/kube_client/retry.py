"""When to try again, and after how long: arithmetic only."""

import math
from random import Random

from attrs import define, field, frozen

from trio_sched.kube_client.errors import ApiError, ServerError, TooManyRequests, Unauthorized
from trio_sched.kube_client.http.http1 import Reply

MAX_RETRIES = 10
MAX_RETRY_AFTER_SECONDS = 300
"""No request waits longer than this before it is repeated, whatever the server asks for."""
SHORTEST_PAUSE_SECONDS = 0.2
FIRST_PAUSE_SECONDS = 0.6
MAX_WATCH_PAUSE_SECONDS = 1.0
MAX_REFUSAL_PAUSE_SECONDS = 10.0
MAX_PAUSE_SECONDS = 30.0
_MAX_DIGITS = 18


def retry_after_seconds(reply: Reply) -> int | None:
    """How long to wait before sending the same request again; None if it is not to be repeated.

    It is repeated after a 429 or 5xx with a whole number in ``Retry-After``: the rule of Kubernetes' own clients.
    """
    if reply.status != 429 and reply.status < 500:
        return None
    value = reply.header(b"retry-after")
    if value is None or not value.isdigit() or len(value) > _MAX_DIGITS:
        return None
    return min(int(value), MAX_RETRY_AFTER_SECONDS)


@frozen
class Pause:
    """A pause that ends when the server answers somebody else, but not before it has lasted a while."""

    at_least_seconds: float
    seconds: float
    """What may follow these, before jitter."""


def connection_pause(failing_for: float, *, is_checked: bool, is_list: bool) -> Pause:
    """The pause after a connection failed: until the server answers somebody.

    Args:
        failing_for: seconds since the first failure in a row, not counting those while the server was away.
        is_checked: whether it is found out when the server is back; else it is tried from time to time.
        is_list: whether a list failed. A watch that fails although the server is there is tried at least every second;
            a list is work for the server.
    """
    at_least = min(failing_for / 10, MAX_REFUSAL_PAUSE_SECONDS if is_list else MAX_WATCH_PAUSE_SECONDS)
    return Pause(at_least, math.inf if is_checked else refusal_pause_seconds(failing_for))


def refusal_pause(failing_for: float, problem: ApiError) -> Pause:
    """The pause after a response that is an error.

    A server that starts refuses for seconds and is to be used as soon as it is ready; one that refuses or throttles for
    minutes is asked ever less. What it refuses to one kind only, it goes on refusing.
    """
    at_least = max(SHORTEST_PAUSE_SECONDS, problem.retry_after_seconds)
    if isinstance(problem, ServerError | TooManyRequests | Unauthorized):
        return Pause(at_least, refusal_pause_seconds(failing_for))
    return Pause(at_least, own_pause(failing_for).seconds)


def refusal_pause_seconds(refused_for: float) -> float:
    """How long to pause while a server refuses everybody, or throttles: a tenth of the time that it has done so."""
    return min(max(FIRST_PAUSE_SECONDS, refused_for / 10), MAX_REFUSAL_PAUSE_SECONDS)


def own_pause(failing_for: float) -> Pause:
    """The pause after a failure that need not concern others: as long as the time since the first one."""
    return Pause(SHORTEST_PAUSE_SECONDS, min(max(FIRST_PAUSE_SECONDS, failing_for), MAX_PAUSE_SECONDS))


@define(eq=False)
class BackoffManager:
    """Exponential backoff: ever longer pauses while something keeps failing, each with jitter on top.

    Args:
        random: where the jitter comes from.
        initial_seconds: the first pause.
        factor: by how much each pause is longer than the one before.
        cap_seconds: the longest pause, without jitter.
        jitter: a pause of *d* lies in ``[d, d × (1 + jitter))``.
        reset_after_seconds: after this long without a failure the pauses start at *initial_seconds* again.
    """

    random: Random
    initial_seconds: float = 0.8
    factor: float = 2.0
    cap_seconds: float = 30.0
    jitter: float = 1.0
    reset_after_seconds: float = 120.0
    _next: float = field(init=False)
    _last: float | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self._next = self.initial_seconds

    def pause_seconds(self, now: float) -> float:
        """How long to pause after a failure at *now*."""
        if self._last is not None and now - self._last > self.reset_after_seconds:
            self._next = self.initial_seconds
        self._last = now
        nominal = self._next
        self._next = min(nominal * self.factor, self.cap_seconds)
        return nominal * (1.0 + self.jitter * self.random.random())
