"""What is told about attempts that are traced; the daemon passes in what makes traces of that."""

from __future__ import annotations

from typing import Protocol

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status


class AttemptTrace(Protocol):
    """One attempt, from the pop to the bind; every method returns at once. After its end it ignores everything."""

    def hook_called(self, hook: BoundHook, status: str, seconds: float) -> None:
        """A call of *hook* that took *seconds* has just ended; *status* is its label in metrics."""

    def waited_on_permit(self, status: str, seconds: float) -> None:
        """The pod has just been allowed or refused, after so many *seconds*."""

    def placed(self, node_name: str, *, evaluated_nodes: int, feasible_nodes: int) -> None:
        """The scheduling cycle is over, the binding cycle begins."""

    def bound(self) -> None:
        """The binding cycle is over, and with it the attempt."""

    def failed(self, status: Status) -> None:
        """The attempt is over, in whichever cycle it was."""

    def given_up(self) -> None:
        """The attempt has ended: the pod need not be scheduled any more, or the scheduler ends."""


class AttemptTracer(Protocol):
    """Decides which attempts are traced."""

    def begin(self, pod: Pod, attempt: int, last: AttemptTrace | None) -> AttemptTrace | None:
        """An attempt begins now; returns None if it is not traced.

        Args:
            pod: the pod.
            attempt: counts from 1.
            last: what the attempt before it has got.
        """
