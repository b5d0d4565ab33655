"""The names of statuses in metrics: what a hook has returned, whatever that is."""

from __future__ import annotations

from typing import Final, cast

from trio_sched.plugin_api.status import Code, Status
from trio_sched.plugin_api.verdicts import PostFilterResult, Verdicts, Wait

SUCCESS: Final = Code.SUCCESS.label
ERROR: Final = Code.ERROR.label
SKIPPED: Final = Code.SKIP.label
WAIT: Final = Code.WAIT.label


def status_label(status: Status | None) -> str:
    """The name of the code of *status* in metrics."""
    return SUCCESS if status is None else status.code.label


def label_of_returned(returned: object) -> str:
    """The status that a hook has returned, whatever it returns, as plugins are timed by it.

    A filter judges all nodes at once: Success if any of them passes.
    """
    kind = type(returned)  # not __class__, which an object of a plugin may have overridden
    if kind is Status:
        return cast("Status", returned).code.label
    if kind is Verdicts:
        verdicts = cast("Verdicts", returned)
        return SUCCESS if not len(verdicts.codes) or verdicts.passes.any() else Code.UNSCHEDULABLE.label
    if kind is PostFilterResult:
        return status_label(cast("PostFilterResult", returned).status)
    return WAIT if kind is Wait else SUCCESS


def label_or_error(returned: object) -> str:
    """The label of any object; an invalid one counts as an error."""
    try:
        return label_of_returned(returned)
    except Exception:  # an object of a plugin; who reads it next finds out what is wrong with it
        return ERROR
