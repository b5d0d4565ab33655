"""An `Outcome` as plain data for JSON and YAML; ``docs/reference/outcome.schema.json`` describes it."""

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.explanation import explanation_as_data
from trio_sched.simulation.report.sections import report_sections

VERSION: Final = 1
"""The version of the data: it grows when something is taken away or gets another meaning, not with additions."""


def outcome_as_data(outcome: Outcome) -> Json:
    """*outcome* for JSON and YAML; CPU in milli-CPU, memory in bytes, times in seconds."""
    time = outcome.time_to_schedule
    return {
        "version": VERSION,
        "summary": {
            "nodes": len(outcome.nodes),
            "placed": len(outcome.placements),
            "pending": outcome.waiting_pods,
            "notCreated": outcome.missing_pods,
            "settled": outcome.settled,
            "simulatedSeconds": round(outcome.simulated_seconds, 3),
        },
        "timeToSchedule": None
        if time is None
        else {"pods": time.pods, "p50": round(time.p50, 3), "p99": round(time.p99, 3), "max": round(time.longest, 3)},
        **{
            section.key: section.data()
            for section in report_sections(outcome, most_rows=None, every_pod=True, every_node=True)
        },
        "explanations": [explanation_as_data(one) for one in outcome.explanations],
    }
