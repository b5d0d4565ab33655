"""The report of a shadow at its end: a table on standard output, a file in JSON, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.shadow.shadow_settings import ShadowSettings
from trio_sched.engine.shadow.judgement import DecisionKind, Judgement, JudgementClass, Judgements
from trio_sched.kube_client.files import UNREADABLE, describe_open_error

TITLE: Final = "Decisions of the other scheduler"
"""The first line of the table."""
_SHOWN: Final = 20
"""The decisions of the class *differs* in the table; the file has more."""


def report_shadow(settings: ShadowSettings, judgements: Judgements) -> ExitCode:
    """Report *judgements*; returns a failure if one of them is of a class that *settings* fail on.

    Raises:
        ConfigError: the file cannot be written.
    """
    _print(judgements)
    if settings.report_file:
        _write(settings.report_file, report(judgements))
    return ExitCode.FAILURE if judgements.count(settings.fail_on) else ExitCode.OK


def report(judgements: Judgements) -> dict[str, Any]:
    """The report as JSON has it."""
    return {**judgements.counted(), "notTheSame": [judgement.as_fields() for judgement in judgements.listed]}


def _print(judgements: Judgements) -> None:
    from trio_sched.cli.process.terminal import answer_console  # rich, which no other daemon needs
    from trio_sched.simulation.tables import table

    classes = [str(one) for one in JudgementClass]
    counts = table(TITLE, "decision", *classes, right=tuple(classes))
    for kind in DecisionKind:
        counts.add_row(str(kind), *map(str, judgements.by_class(kind).values()))
    out = answer_console()
    out.print(counts)
    different = [one for one in judgements.listed if one.judged is JudgementClass.DIFFERS][-_SHOWN:]
    if not different:
        return
    columns = ("pod", "decision", "node", "score", "shadow's nodes", "shadow's score", "plugin", "detail")
    listed = table("The last of those that differ", *columns, right=("score", "shadow's score"))
    for one in different:
        listed.add_row(*_cells(one))
    out.print(listed)


def _cells(one: Judgement) -> list[str]:
    totals = ["" if total is None else str(total) for total in (one.total, one.own_total)]
    nodes = ", ".join(one.own_nodes[:3]) + (", …" if len(one.own_nodes) > 3 else "")
    decision = one.decision
    return [
        decision.pod.key,
        str(decision.kind),
        decision.node_name,
        totals[0],
        nodes,
        totals[1],
        one.plugin,
        one.detail or decision.message,
    ]


def _write(path: str, content: dict[str, Any]) -> None:
    try:
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    except UNREADABLE as error:
        raise ConfigError.of(f"--shadow-report: {describe_open_error(path, error)}") from error
