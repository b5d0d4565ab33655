"""Writes docs/reference/versions.md from the gates and behaviours: ``python -m contrib.docs.make_versions``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import fields

from contrib.docs.pages import Page, table
from trio_sched.config.feature_gates import FeatureGates, Stage
from trio_sched.plugin_api.behaviour import Behaviour

HEADER: Final = """\
# What 1.37 changes

`--emulated-version=1.37` schedules as kube-scheduler 1.37, `--emulated-version=1.36` as 1.36. Without the flag the
daemon asks the API server, once at its start: it schedules as 1.37 where the server is of 1.37 or newer, as 1.36 where
it is older or does not say it within two seconds. A configuration that only 1.37 has, such as `shape` of VolumeBinding,
is read on such a server, and refused on others. `simulate`, `compare`, `what-if` and `explain` do likewise: the version
of the API server in memory, `--kubernetes-version`, decides, which is that of a running cluster if it is newer than
1.36, or 1.35, whose workloads no other has, unless `--emulated-version` says otherwise; `explain`, `top`, `ui` and
`check-config --context` ask the cluster that they are about. Older versions, down to 1.33, have their own feature gates
and behave as 1.36 otherwise.

This page is made from `trio_sched/plugin_api/behaviour.py` and `trio_sched/config/feature_gate_table.py` by
`make docs`.

## Behaviour
"""
GATES: Final = """\

## Feature gates

A gate that is removed is refused as unrecognized; one that is locked cannot be set to another value.
"""
DIFFERENCES: Final = """\

## Where trio-sched differs from 1.37

- A DeviceTaintRule without `deviceSelector` taints no device, as the API says it and 1.38 does it; in 1.37.0 it taints
  all.
- On an API server that does not serve DeviceTaintRule, scheduling goes on without the rules; 1.37 waits for them and
  schedules nothing.
- GenericWorkload stands for GangScheduling and WorkloadAwarePreemption, too, whose gates 1.37 has removed. A pod of a
  group that could not be bound, or that permit rejects, backs off; in 1.37 it is tried at once. What is promised for
  [gangs](../how_to/run_gangs.md#what-is-promised) holds in both versions.
- Batches: scores of equal pods are kept for longer than half a second, for many kinds of pods at once, and every node
  that changes is scored again, not only the one chosen last. A decision is that of scoring all nodes; one of 1.37's
  batches does not know of changes to other nodes for half a second.
- Patches of the status of pods name no `resourceVersion`, which keeps 1.37 from writing into the status of a bound pod
  that it is not scheduled: here nothing is patched while a pod is being bound.
- As in 1.36 are the metrics, but for labels of events and [those that say so](metrics.md).
- `--help` lists the gates of 1.36, and `--version` says 1.36.
- [Trees of groups](../how_to/run_gangs.md#trees-of-groups) are scheduled without TopologyAwareWorkloadScheduling, too,
  and a pod group whose tree is not whole is told so in its condition.
- These gates are refused at the start if they are on: DRADerivedAttributes, DRADeviceCompatibilityGroups,
  DRAOptionalNodeOperations, InPlacePodVerticalScalingSchedulerPreemption. InterPodAffinityHostnameFastPath
  and SchedulerPreQueueingHints can be set and change nothing.
"""
_OLD: Final = FeatureGates((1, 36))
_NEW: Final = FeatureGates((1, 37), compatibility=(1, 36))


def text() -> str:
    """The whole page."""
    behaviours = (tuple(one.metadata[part] for part in ("area", "before", "since")) for one in fields(Behaviour))
    return "\n".join(
        [
            HEADER,
            table(("what", "1.36", "1.37"), behaviours).rstrip(),
            GATES,
            table(("gate", "1.36", "1.37"), _gate_rows()).rstrip(),
            DIFFERENCES.rstrip(),
            "",
        ]
    )


def _gate_rows() -> Iterator[tuple[str, ...]]:
    old, new = dict(_named(_OLD)), dict(_named(_NEW))
    for name in sorted(old | new):
        before, since = _words(old.get(name)), _words(new.get(name))
        if name not in old:
            before = "unknown"
        if name not in new:
            since = "removed"
        if before != since:
            yield f"`{name}`", before, since


def _named(gates: FeatureGates) -> Iterator[tuple[str, Stage]]:
    for gate, stage in gates.stages():
        yield gate.name, stage


def _words(stage: Stage | None) -> str:
    if stage is None:
        return ""
    state = "on" if stage.default else "off"
    words = [stage.stage.lower() if stage.stage else "GA", state, *(["locked"] if stage.locked else [])]
    return ", ".join(words)


PAGE: Final = Page("versions.md", text)

if __name__ == "__main__":
    PAGE.write()
