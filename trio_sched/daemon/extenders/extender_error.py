"""The error of extenders, for those that call them only where there are some."""

from trio_sched.errors import TrioSchedError


class ExtenderError(TrioSchedError):
    """An extender could not be called, or its response is invalid; the text is that of kube-scheduler."""
