"""What the flags about shadows say."""

from __future__ import annotations

from attrs import frozen

from trio_sched.engine.shadow.judgement import JudgementClass


@frozen(kw_only=True)
class ShadowSettings:
    """The scheduler whose decisions are compared, and what comes of it."""

    schedulers: frozenset[str]
    """The schedulerNames of the pods; each is that of a profile."""
    fail_on: frozenset[JudgementClass] = frozenset()
    """A decision of one of these classes makes the process end with a failure."""
    report_file: str = ""
    """Where the report is written as JSON at the end; empty: nowhere."""
