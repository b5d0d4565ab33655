"""Fault injection: latencies, refusals, dropped replies."""

from collections.abc import Callable

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.errors import TrioSchedError
from trio_sched.simulator.errors.status_errors import ApiError

ANY = "*"


class ReplyDropped(TrioSchedError):
    """The request was carried out, but its reply was dropped."""


@define(eq=False)
class _Rule:
    verb: str
    resource: str
    remaining: int
    error: Callable[[], ApiError] | None

    def matches(self, verb: str, resource: str) -> bool:
        return self.remaining > 0 and self.verb in (ANY, verb) and self.resource in (ANY, resource)


@define(eq=False)
class Faults:
    """The faults to inject.

    Verbs are Kubernetes' (``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete``,
    ``deletecollection``) and ``bind`` and ``evict``; resources are plural names; ``"*"`` stands for any.
    """

    _rules: list[_Rule] = field(factory=list, init=False)
    _latencies: dict[tuple[str, str], float] = field(factory=dict, init=False)

    def __bool__(self) -> bool:
        return bool(self._rules or self._latencies)

    def set_latency(self, seconds: float, *, verb: str = ANY, resource: str = ANY) -> None:
        """Let such requests wait for *seconds* before they are carried out; 0 ends that."""
        if seconds:
            self._latencies[verb, resource] = seconds
        else:
            self._latencies.pop((verb, resource), None)

    def fail_next(
        self,
        count: int = 1,
        *,
        verb: str = ANY,
        resource: str = ANY,
        code: int = 500,
        reason: str = "InternalError",
        message: str = "Internal error occurred: injected by the simulator",
        retry_after_seconds: int | None = None,
    ) -> None:
        """Refuse the next *count* such requests, without carrying them out."""
        details: Json | None = None if retry_after_seconds is None else {"retryAfterSeconds": retry_after_seconds}
        self._rules.append(_Rule(verb, resource, count, lambda: ApiError(code, reason, message, details)))

    def drop_next(self, count: int = 1, *, verb: str = ANY, resource: str = ANY) -> None:
        """Carry out the next *count* such requests and drop the replies."""
        self._rules.append(_Rule(verb, resource, count, None))

    def clear(self) -> None:
        """Remove all faults."""
        self._rules.clear()
        self._latencies.clear()

    def latency_seconds(self, verb: str, resource: str) -> float:
        """How long such a request waits; the most specific setting applies."""
        for key in ((verb, resource), (verb, ANY), (ANY, resource), (ANY, ANY)):
            if key in self._latencies:
                return self._latencies[key]
        return 0.0

    def inject(self, verb: str, resource: str) -> bool:
        """Apply the first rule that matches such a request, and use it up.

        Returns:
            Whether the reply is to be dropped.

        Raises:
            ApiError: the request is to be refused.
        """
        for rule in self._rules:
            if rule.matches(verb, resource):
                rule.remaining -= 1
                if rule.remaining == 0:
                    self._rules.remove(rule)
                if rule.error is not None:
                    raise rule.error()
                return True
        return False
