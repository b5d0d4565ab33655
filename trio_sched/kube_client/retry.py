"""When to try again, and after how long: arithmetic only."""

from random import Random

from attrs import define, field

from trio_sched.kube_client.http1 import Reply

MAX_RETRIES = 10
MAX_RETRY_AFTER_SECONDS = 300
"""No request waits longer than this before it is repeated, whatever the server asks for."""
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
