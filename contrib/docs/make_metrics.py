"""Writes docs/reference/metrics.md from the tables of families: ``python -m contrib.docs.make_metrics``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from contrib.docs.pages import Page
from trio_sched.daemon.metrics.families.client_families import CLIENT_FAMILIES
from trio_sched.daemon.metrics.families.component_families import COMPONENT_FAMILIES, RESOURCE_FAMILIES, SLI_FAMILIES
from trio_sched.daemon.metrics.families.families import Family
from trio_sched.daemon.metrics.families.own_families import OWN_FAMILIES
from trio_sched.daemon.metrics.families.scheduler_families import SCHEDULER_FAMILIES
from trio_sched.daemon.metrics.families.serving_families import SERVING_FAMILIES
from trio_sched.daemon.metrics.formats.text_format import number

HEADER: Final = """\
# Metrics

Names, types, labels, buckets and help are those of kube-scheduler 1.36, so that dashboards and alerts work unchanged;
what is only here begins with `trio_sched_`. *Here* says where a value means something else than in kube-scheduler, or
why there is never one. A series appears when it is first used.

- `/metrics` has everything but the two groups at the end, in the text format 0.0.4, or as delimited protobuf if that is
  asked for. A client that accepts no text and asks for a version of OpenMetrics gets that; there a few counters have
  another name, because it must end in `_total`. DELETE resets what has labels, and hides what describes the build.
- `/metrics/resources` has what every pod requests, while this instance is the leader.
- `/metrics/slis` has the outcomes of health checks.

`--disabled-metrics` leaves out families by name. `--allow-metric-labels`, or a file with the same, says which values a
label may have; all others become `unexpected`.

Besides these there are families of plugins: what a plugin makes with `handle.metrics` is called
`trio_sched_plugin_<plugin>_<name>`, with its name in snake case. Each has at most 1,000 series; what is beyond is
counted under `other`, or in case of a gauge dropped. What is in the default registry of prometheus-client, if a plugin
imports that, is shown as well, except for names of this page.

This page is made from the code: change the tables in `trio_sched/daemon/metrics/` and run `make docs`.
"""
_GROUPS: Final[dict[str, tuple[Family, ...]]] = {
    "Scheduling": SCHEDULER_FAMILIES,
    "Only in trio-sched": OWN_FAMILIES,
    "Requests to the API server, leader election, work queues": CLIENT_FAMILIES,
    "Authentication and authorization": SERVING_FAMILIES,
    "The process": COMPONENT_FAMILIES,
    "`/metrics/resources`": RESOURCE_FAMILIES,
    "`/metrics/slis`": SLI_FAMILIES,
}


def text() -> str:
    """The whole page."""
    return "\n".join([HEADER, *(line for title, families in _GROUPS.items() for line in _group(title, families))])


def _version(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _group(title: str, families: Iterable[Family]) -> Iterator[str]:
    yield f"## {title}\n"
    for family in sorted(families, key=lambda one: one.name):
        yield f"### {family.name}\n"
        facts = [family.type.value, family.stability]
        if family.labels:
            facts.append("labels " + ", ".join(f"`{label}`" for label in family.labels))
        if family.buckets:
            bounds = [number(bound) for bound in family.buckets]
            shown = bounds if len(bounds) <= 4 else [*bounds[:3], "…", bounds[-1]]
            facts.append(f"{len(bounds)} buckets: {', '.join(shown)}")
        if family.gates:
            facts.append("gate " + ", ".join(f"`{gate}`" for gate in family.gates))
        if family.since > (0, 0):
            facts.append(f"since {_version(family.since)}")
        if family.until is not None:
            facts.append(f"until {_version(family.until)}")
        if family.beta_since is not None:
            facts.append(f"BETA since {_version(family.beta_since)}")
        if family.deprecated_since is not None:
            facts.append(f"deprecated since {_version(family.deprecated_since)}")
        yield f"{'; '.join(filter(None, facts))}\n"
        if family.text:
            yield f"{family.text}\n"
        if family.note:
            yield f"*Here:* {family.note}\n"


PAGE: Final = Page("metrics.md", text)

if __name__ == "__main__":
    PAGE.write()
