"""When to try again, and after how long: arithmetic only."""

from random import Random

from attrs import define, field

from trio_sched.kube_client.http1 import Reply

MAX_RETRIES = 10


def retry_after_seconds(reply: Reply) -> int | None:
    """How long the server asks us to wait before the same request again; None: don't.

    Only 429 and 5xx count, and only with a whole number in ``Retry-After``: the rule of Kubernetes' own clients.
    """
    if reply.status != 429 and reply.status < 500:
        return None
    value = reply.header(b"retry-after")
    if value is None or not value.isdigit():
        return None
    return int(value)


@define(eq=False)
class Backoff:
    """Ever longer pauses while something keeps failing, each up to twice its nominal length.

    Args:
        random: where the jitter comes from.
        initial_seconds: the first pause.
        factor: how much longer the next is.
        cap_seconds: nominal length of the longest.
        jitter: a pause of *d* lies in ``[d, d × (1 + jitter))``.
        reset_after_seconds: so long without a failure, and the pauses are short again.
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
