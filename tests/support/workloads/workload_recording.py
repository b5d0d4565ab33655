"""What a real control plane did in each scenario, kept in a file: of every step what is new in it, and what is gone."""

import json
from pathlib import Path

from workload_mirror import Summary

Found = dict[str, dict[str, Summary]]
"""Scenario → step → what there was."""

RECORDING = Path(__file__).parents[2] / "simulator" / "controllers" / "recorded_workloads.json"


def write_recording(found: Found) -> None:
    """Keep what was *found* on a real control plane."""
    kept = {}
    for scenario, steps in sorted(found.items()):
        before: Summary = {}
        kept[scenario] = {}
        for step, seen in steps.items():
            new = {line: count for line, count in sorted(seen.items()) if before.get(line) != count}
            kept[scenario][step] = {"new": new, "gone": sorted(before.keys() - seen.keys())}
            before = seen
    RECORDING.write_text(json.dumps(kept, indent=1) + "\n")


def read_recording() -> Found:
    """What was kept."""
    found: Found = {}
    for scenario, steps in json.loads(RECORDING.read_text()).items():
        seen: Summary = {}
        found[scenario] = {}
        for step, change in steps.items():
            seen = {line: count for line, count in (seen | change["new"]).items() if line not in change["gone"]}
            found[scenario][step] = seen
    return found


def differences(simulated: dict[str, Summary], real: dict[str, Summary]) -> str:
    """What only one of them has after some step of a scenario, or another number of; a line each."""
    told = []
    for step in dict.fromkeys([*simulated, *real]):
        here, there = simulated.get(step, {}), real.get(step, {})
        told += [
            f"{step}: {line}: {here.get(line, 0)} simulated, {there.get(line, 0)} real"
            for line in sorted({*here, *there})
            if here.get(line) != there.get(line)
        ]
    return "\n".join(told)
