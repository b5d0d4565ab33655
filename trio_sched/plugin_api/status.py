"""What a plugin answers: fine (None), or a Status that says what else."""

from __future__ import annotations

from enum import IntEnum

from attrs import evolve, frozen


class Code(IntEnum):
    """Kinds of answers, numbered as in the scheduling framework."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    """No, but removing other pods could help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """No, and removing other pods would not help."""
    WAIT = 4
    """permit only: ask again when somebody allows it."""
    SKIP = 5
    """This plugin has nothing to do with this pod."""
    PENDING = 6
    """No, until something the plugin itself started has happened; the pod then comes back without backoff."""

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
"""The codes with which a plugin says no, as opposed to having failed."""


@frozen
class Status:
    """An answer other than plain success; ``None`` means success everywhere."""

    code: Code
    reasons: tuple[str, ...] = ()
    error: BaseException | None = None
    plugin: str = ""
    """Who answered; filled in by the framework."""

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
        """Whether the plugin said no, as opposed to having failed."""
        return self.code in REJECTED

    def by(self, plugin: str) -> Status:
        """The same answer, signed by *plugin*."""
        return self if self.plugin == plugin else evolve(self, plugin=plugin)


SKIP = Status(Code.SKIP)
"""The plugin has nothing to do with this pod in this cycle."""


def unschedulable(*reasons: str) -> Status:
    """No; removing other pods could help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """No; and removing other pods would not help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    """No, until something that this plugin has started happens."""
    return Status(Code.PENDING, reasons)


def failure(error: BaseException | str, *reasons: str) -> Status:
    """The plugin could not answer; the pod is tried again after its backoff."""
    return Status(Code.ERROR, reasons, RuntimeError(error) if isinstance(error, str) else error)


def code_of(status: Status | None) -> Code:
    """The code of an answer, None being success."""
    return Code.SUCCESS if status is None else status.code
