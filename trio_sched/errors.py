"""The root of every error trio-sched raises on purpose."""


class TrioSchedError(Exception):
    """Something a person can understand and mend; its text says what, where and how."""
