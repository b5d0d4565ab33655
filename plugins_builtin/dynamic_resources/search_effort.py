"""How long devices are looked for, and how a search ends without an answer."""

from attrs import define

MAX_DEVICES_TRIED = 200_000
"""Devices that are tried on one node before the search is given up, as it is after the time limit for filters."""


class SelectorFailed(Exception):
    """An expression that does not compile, or that failed for a device; the text is kube-scheduler's."""

    def __init__(self, text: str, *, is_runtime_error: bool) -> None:
        super().__init__(text)
        self.is_runtime_error = is_runtime_error
        """Whether it failed for this device, as opposed to all."""


class AllocationFailed(Exception):
    """Something is wrong with a claim or a class; ends the cycle."""


class SearchTimedOut(AllocationFailed):
    """The search was given up."""

    def __init__(self, *, is_final: bool = False) -> None:
        super().__init__("timed out trying to allocate devices")
        self.is_final = is_final
        """Whether another try would be given up as well: what was done on other nodes has no part in it."""


@define(eq=False)
class Effort:
    """What may still be done for one pod, on all nodes together; the unit is one device that is tried.

    Devices that are only looked at once or twice per node do not count: harmless pods need that much.
    """

    left: int = MAX_DEVICES_TRIED

    def spend(self, devices: int) -> None:
        """Count what was done.

        Raises:
            SearchTimedOut: it was too much.
        """
        self.left -= devices
        if self.left < 0:
            raise SearchTimedOut
