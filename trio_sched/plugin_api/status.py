"""What most hooks return: None for success, or a Status."""

from __future__ import annotations

from enum import IntEnum

from attrs import evolve, frozen

from trio_sched.plugin_api.clauses import Change


class Code(IntEnum):
    """The codes of the scheduling framework, with its numbers."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    """Rejected; removing other pods could help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Rejected; removing other pods would not help."""
    WAIT = 4
    """Not yet: placement_feasible returns it as `not_yet`; at permit plugins return a `Wait` instead of this code."""
    SKIP = 5
    """This plugin has nothing to do for this pod."""
    PENDING = 6
    """Rejected until something that the plugin has started happens; the pod is then queued without backoff."""

    @property
    def label(self) -> str:
        """The name used in metrics and texts, ``UnschedulableAndUnresolvable`` for instance."""
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})
"""The codes that reject the pod or the node; other codes do not, and Error is a failure."""


@frozen
class Status:
    """A code with reasons, or with an error; ``None`` in place of a Status means success."""

    code: Code
    reasons: tuple[str, ...] = ()
    error: BaseException | None = None
    plugin: str = ""
    """The plugin that returned it; set by the framework."""
    clause: str = ""
    """What the pod asks for that is not met, in a few words, for explanations; else these take the reasons."""
    remedy: Change | None = None
    """What would help, for explanations: it is tried on a copy of the cluster before it is shown."""

    @property
    def all_reasons(self) -> tuple[str, ...]:
        """The reasons, the text of the error first if there is one."""
        return self.reasons if self.error is None else (str(self.error), *self.reasons)

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.all_reasons)

    @property
    def is_rejected(self) -> bool:
        """Whether the plugin rejected the pod or the node, as opposed to having failed."""
        return self.code in REJECTED

    def about(self, clause: str, *, remedy: Change | None = None) -> Status:
        """The same status, about *clause* of the pod, with what would help; see `Change`."""
        return evolve(self, clause=clause, remedy=remedy)

    def by(self, plugin: str) -> Status:
        """The same status with *plugin* as its plugin."""
        return self if self.plugin == plugin else evolve(self, plugin=plugin)


SKIP = Status(Code.SKIP)
"""The plugin has nothing to do for this pod in this cycle."""


def unschedulable(*reasons: str) -> Status:
    """Rejected; removing other pods could help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Rejected; removing other pods would not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    """Rejected until something that this plugin has started happens."""
    return Status(Code.PENDING, reasons)


def not_yet(*reasons: str) -> Status:
    """What the pod group has so far is not enough, and may be with its next pods; only for placement_feasible."""
    return Status(Code.WAIT, reasons)


def failure(error: BaseException | str, *reasons: str) -> Status:
    """The plugin failed with *error*; the pod is queued again after its backoff."""
    return Status(Code.ERROR, reasons, RuntimeError(error) if isinstance(error, str) else error)
