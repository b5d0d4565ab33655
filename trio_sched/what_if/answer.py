"""The answer to a question of ``trio-sched what-if``: a few sentences, and sections for tables, page and data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulation.node_usage import NodeGroup
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.sections import Names, Section, Shown
from trio_sched.simulation.units import heading, percent, plural
from trio_sched.what_if.effects import Effect

VERSION: Final = 1
"""The version of the data: properties may be added, none is taken away or gets another meaning without a new one."""
_SHARES: Final = ("cpu", "memory")


@frozen(kw_only=True)
class Answer:
    """What would become of the cluster."""

    question: str
    works: bool
    """Whether what was asked for can be done, and no pod loses its place for it."""
    sentences: tuple[str, ...]
    sections: tuple[Section, ...]
    commands: tuple[str, ...] = ()
    """What does the same to the cluster itself."""

    @property
    def headline(self) -> str:
        """The answer in a line."""
        return f"{self.question}: {'works' if self.works else 'does not work without loss'}"

    def as_data(self, token: str) -> Json:
        """For JSON and YAML; *token* says of which state of the cluster it holds."""
        return {
            "version": VERSION,
            "question": self.question,
            "works": self.works,
            "summary": list(self.sentences),
            "commands": list(self.commands),
            "token": token,
            **{section.key: section.data() for section in self.sections if section.keys},
        }


def effect_sections(
    effects: Sequence[Effect], before: Outcome, after: Outcome, *, every_pod: bool, most_rows: int | None
) -> Iterator[Section]:
    """The sections that every answer has.

    Args:
        effects: what has become of pods.
        before: the cluster before the change.
        after: the cluster after it.
        every_pod: whether tables and the page list each pod instead of each workload.
        most_rows: how many workloads tables and the page list at most; None: all.
    """
    yield _pods(effects, every_pod)
    if not every_pod:
        yield _workloads(effects, most_rows)
    yield _pending(effects)
    yield _groups("pools", "Pools", "Pool", before.pools, after.pools)
    yield _groups("zones", "Zones", "Zone", before.zones, after.zones)


def counted_effects(effects: Iterable[Effect]) -> Iterator[str]:
    """Sentences that count what becomes of pods."""
    counts = Counter(map(_what, effects))
    for what, text in _WORDS.items():
        if counts[what]:
            yield f"{plural(counts[what], 'pod')} {text}"


_WORDS: Final = {
    "pending": "would have no node",
    "gone": "would be gone, and nothing makes them again",
    "preempted": "would be preempted",
    "moved": "would run on another node",
    "placed": "pending now would get a node",
    "created": "would be new on a node",
    "createdPending": "would be new and pending",
}


def _what(effect: Effect) -> str:
    if effect.preempted_by and effect.is_lost:
        return "preempted"
    if effect.is_gone:
        return "gone" if effect.was_on else ""
    if not effect.existed:
        return "created" if effect.node else "createdPending"
    if effect.was_on:
        return "moved" if effect.node else "pending"
    return "placed" if effect.node else ""


def _shown_node(node: str, effect: Effect) -> str:
    return node or ("gone" if effect.is_gone else "pending")


def _pods(effects: Sequence[Effect], every_pod: bool) -> Section:
    return Section(
        "pods",
        "Pods",
        heads=("Pod", "From", "Then", "To", "Why", "", "", ""),
        keys=("pod", "from", "replacement", "to", "why", "workload", "isNew", "preemptedBy"),
        rows=[
            (
                one.pod,
                Shown(one.was_on or ("pending" if one.existed else "new"), one.was_on or None),
                Shown(one.replacement if one.replacement != one.pod else "", one.replacement or None),
                Shown(_shown_node(one.node, one), one.node or None),
                Shown(one.why or (f"preempted by {one.preempted_by}" if one.preempted_by else ""), one.why or None),
                one.workload,
                Shown("", not one.existed),
                Shown("", one.preempted_by or None),
            )
            for one in effects
        ],
        is_shown=every_pod and bool(effects),
    )


def _workloads(effects: Sequence[Effect], most_rows: int | None) -> Section:
    groups: dict[tuple[str, str], list[Effect]] = {}
    for one in effects:
        if what := _what(one):
            groups.setdefault((one.workload, what), []).append(one)
    rows = [
        (
            workload,
            len(many),
            Names(tuple(sorted({one.was_on or ("pending" if one.existed else "new") for one in many}))),
            Names(tuple(f"{node} x{count}" if count > 1 else node for node, count in _targets(many))),
        )
        for (workload, _what_), many in groups.items()
    ]
    more = len(rows) - most_rows if most_rows is not None else 0
    return Section(
        "",
        "Workloads",
        heads=("Workload", "Pods", "From", "To"),
        keys=(),
        numbers=("Pods",),
        rows=rows[:most_rows],
        left_out=f"and {more} more" if more > 0 else "",
        option="--pods lists every pod",
    )


def _targets(effects: Iterable[Effect]) -> list[tuple[str, int]]:
    return sorted(Counter(_shown_node(one.node, one) for one in effects).items())


def _pending(effects: Sequence[Effect]) -> Section:
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in effects:
        if not one.node and one.replacement:
            reasons.setdefault((one.workload, one.why), []).append(one.replacement)
    return Section(
        "pending",
        "Pending afterwards",
        heads=("Workload", "Pods", "Why", ""),
        keys=("workload", "", "why", "pods"),
        numbers=("Pods",),
        rows=[(workload, len(pods), why, Names(tuple(pods))) for (workload, why), pods in reasons.items()],
    )


def _groups(key: str, title: str, what: str, before: Sequence[NodeGroup], after: Sequence[NodeGroup]) -> Section:
    then, now = ({one.name: one for one in groups} for groups in (before, after))
    names = [name for name in sorted(then.keys() | now.keys()) if name != "-" or len(then.keys() | now.keys()) > 1]
    return Section(
        key,
        title,
        heads=(what, "Nodes", "Pods", *map(heading, _SHARES)),
        keys=("name", "nodes", "pods", *_SHARES),
        numbers=("Nodes", "Pods", *map(heading, _SHARES)),
        rows=[
            (
                name,
                _change(*(one.nodes if one else 0 for one in (then.get(name), now.get(name)))),
                _change(*(one.usage.pods if one else 0 for one in (then.get(name), now.get(name)))),
                *(_shares(resource, then.get(name), now.get(name)) for resource in _SHARES),
            )
            for name in names
        ],
    )


def _change(before: int, after: int) -> Shown:
    text = str(before) if before == after else f"{before} → {after}"
    return Shown(text, {"before": before, "after": after})


def _shares(resource: str, before: NodeGroup | None, after: NodeGroup | None) -> Shown:
    texts, data = [], {}
    for side, group in (("before", before), ("after", after)):
        allocatable = group.usage.allocatable.get(resource, 0) if group is not None else 0
        requested = group.usage.requested.get(resource, 0) if group is not None else 0
        texts.append(percent(requested, allocatable) if allocatable else "-")
        data[side] = {"requested": requested, "allocatable": allocatable}
    return Shown(texts[0] if texts[0] == texts[1] else " → ".join(texts), data)
