"""Checks that any plugin package can run on its own plugins.

They find violations of the contract that the scheduler does not notice and that lead to wrong placements: a filter
whose answer for a node depends on which other nodes it got, a signature that is equal for pods that get different
results, a dependency that was not declared, a column that was written to::

    def test_my_plugin_keeps_the_contract() -> None:
        check_conformance(MyPlugin, pods=[pod("small"), pod("big", cpu="3")])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import frozen
from msgspec.structs import replace
from numpy.typing import NDArray

from trio_sched.engine.filtering import run_filters, run_pre_filters
from trio_sched.engine.hook_failure import HookFailed
from trio_sched.engine.likely_mistakes import likely_mistakes
from trio_sched.engine.plugin_calls import call_hint, call_normalize_score, call_score
from trio_sched.engine.plugin_errors import PluginError
from trio_sched.engine.plugin_registry import hooks_of
from trio_sched.engine.profile import Profile
from trio_sched.engine.queueing_hints import build_hint_table
from trio_sched.engine.return_values import check_score_range
from trio_sched.engine.scoring import run_pre_scores
from trio_sched.errors import TrioSchedError
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node, NodeSpec
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_group import PodGroup
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.plugin_api.cluster_events import Resource
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Status
from trio_sched.plugin_api.verdicts import Input
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing.args_conformance import args_problems
from trio_sched.testing.builders import node, pod
from trio_sched.testing.fake_handle import FakeHandle
from trio_sched.testing.hook_conformance import GROUP_NAME, hook_problems
from trio_sched.testing.plugin_harness import make_profile, make_table


class NotConforming(TrioSchedError, AssertionError):
    """A plugin violates rules that the scheduler relies on."""

    def __init__(self, plugin: str, problems: Sequence[str]) -> None:
        self.plugin, self.problems = plugin, tuple(problems)
        super().__init__(plugin, self.problems)

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} breaks {len(self.problems)} promises:\n  " + "\n  ".join(self.problems)


def check_conformance(
    plugin: type[Any],
    *,
    pods: Iterable[Pod] | None = None,
    nodes: Iterable[Node] | None = None,
    running: Iterable[Pod] | None = None,
    args: Any = None,
    handle: FakeHandle | None = None,
) -> None:
    """Check that *plugin* keeps the contract of the extension points.

    Args:
        plugin: the class.
        pods: incoming pods; should include all kinds that the plugin treats differently.
        nodes: nodes; should include all kinds that the plugin treats differently.
        running: pods on these nodes.
        args: its ``pluginConfig``.
        handle: what it gets as its handle.

    Raises:
        NotConforming: it does not; the error lists all violations.
    """
    found = conformance_problems(
        plugin, pods=pods, nodes=nodes, running=running, args=args, handle=handle or FakeHandle()
    )
    problems = list(dict.fromkeys(found))  # several checks can meet the same failure
    if problems:
        raise NotConforming(str(getattr(plugin, "name", plugin)), problems)


def conformance_problems(
    plugin: type[Any],
    *,
    pods: Iterable[Pod] | None = None,
    nodes: Iterable[Node] | None = None,
    running: Iterable[Pod] | None = None,
    args: Any = None,
    handle: FakeHandle,
) -> Iterator[str]:
    """What `check_conformance` finds, one by one."""
    name = str(getattr(plugin, "name", plugin))
    try:
        profile = make_profile([plugin], args={} if args is None else {name: args}, handle=handle)
    except PluginError as error:
        yield str(error)
        return
    yield from likely_mistakes(plugin)
    yield from args_problems(name, plugin, args)
    yield from _event_problems(profile, hooks_of(plugin))
    cluster = _Cluster(
        tuple(some_nodes() if nodes is None else nodes), tuple(some_running_pods() if running is None else running)
    )
    waiting = list(some_pods() if pods is None else pods)
    handle.nodes = NodeColumns(cluster.table())
    _add_pod_group(handle, waiting)
    for each in waiting:
        yield from _answer_problems(profile, cluster, each)
        yield from hook_problems(profile, handle.nodes, each)
    yield from _signature_problems(profile, cluster, waiting)


def _add_pod_group(handle: FakeHandle, waiting: Sequence[Pod]) -> None:
    """Let plugins find the pod group that their hooks about groups are called with."""
    groups = handle.known_objects.setdefault("PodGroup", [])
    for namespace in sorted({each.namespace for each in waiting}):
        groups.append(PodGroup(metadata=ObjectMeta(name=GROUP_NAME, namespace=namespace)))
        handle.grouped.append(pod("member", namespace=namespace, group=GROUP_NAME))


def some_nodes() -> list[Node]:
    """Nodes that differ in what the built-in plugins use."""
    zones = ("a", "b", "c")
    return [
        node(
            f"node-{i}",
            cpu=("2", "4", "8")[i % 3],
            memory=("4Gi", "16Gi")[i % 2],
            pods=4 if i == 5 else 110,
            allocatable={"example.com/gpu": 2} if i % 4 == 0 else None,
            labels={"topology.kubernetes.io/zone": zones[i % 3], "disk": "ssd" if i % 2 else "hdd"},
            taints=["dedicated=batch:NoSchedule"] if i == 3 else ["slow:PreferNoSchedule"] if i == 4 else (),
            unschedulable=i == 6,
            images={"registry.test/app:1": 300 << 20} if i < 2 else None,
        )
        for i in range(8)
    ]


def some_running_pods() -> list[Pod]:
    """Pods on some of `some_nodes`."""
    return [
        pod(
            f"running-{i}",
            cpu=("500m", "1", None)[i % 3],
            memory=("1Gi", None)[i % 2],
            labels={"app": ("web", "db")[i % 2]},
            host_ports=(8080,) if i == 2 else (),
            node_name=f"node-{i % 5}",
        )
        for i in range(9)
    ]


def some_pods() -> list[Pod]:
    """Incoming pods that differ in what the built-in plugins use."""
    return [
        pod("plain"),
        pod("plain-too"),
        pod("small", cpu="100m", memory="128Mi", labels={"app": "web"}),
        pod("small-too", cpu="100m", memory="128Mi", labels={"app": "web"}),
        pod("big", cpu="3", memory="6Gi", priority=100),
        pod("impossible", cpu="100"),
        pod("gpu", cpu="1", requests={"example.com/gpu": 1}),
        pod("port", host_ports=(8080,)),
        pod("tolerant", tolerations=["dedicated", "slow", "node.kubernetes.io/unschedulable"]),
        pod("zoned", node_selector={"topology.kubernetes.io/zone": "b"}),
    ]


@frozen
class _Cluster:
    nodes: tuple[Node, ...]
    running: tuple[Pod, ...]

    def table(self) -> NodeTable:
        return make_table(self.nodes, [p for p in self.running if p.node_name in {n.name for n in self.nodes}])


@frozen(eq=False)
class _Results:
    """What the plugin returns for every node; scores also for nodes that its filter rejects."""

    statuses: tuple[Status | None, ...] | None
    scores: NDArray[np.int64] | None


def _ask(profile: Profile, waiting: Pod, nodes: NodeColumns, everything: NodeColumns) -> _Results | None:
    """The results about *nodes*; None if pre_filter ends the cycle.

    Raises:
        HookFailed: it failed.
    """
    state = CycleState()
    prepared = run_pre_filters(profile.pre_filter, waiting, everything, state)
    if prepared.rejected is not None:
        return None
    outcome = run_filters(profile.filter, waiting, nodes, state)
    statuses = tuple(outcome.status(position) for position in range(len(nodes))) if profile.filter else None
    run_pre_scores(profile.pre_score, waiting, everything, state)
    scorers = [scorer for scorer in profile.score if scorer.plugin not in state.skip_score]
    scores = call_score(scorers[0], waiting, nodes, state) if scorers else None
    return _Results(statuses, scores)


def _answer_problems(profile: Profile, cluster: _Cluster, waiting: Pod) -> Iterator[str]:
    table = cluster.table()
    everything = NodeColumns(table)
    before = _copies(table)
    where = f"pod {waiting.name!r}"
    try:
        whole = _ask(profile, waiting, everything, everything)
        changed = [column for column, copy in _copies(table).items() if not np.array_equal(copy, before[column])]
        if changed:
            yield f"{where}: it wrote to the columns {', '.join(changed)}, which belong to everybody"
            return
        if whole is None:
            return
        yield from _subset_problems(profile, waiting, everything, whole, where)
        if whole.scores is not None:
            yield from _normalize_problems(profile, waiting, everything, whole.scores, where)
        for plugin in profile.depends_on:
            yield from _dependency_problems(profile, plugin, cluster, waiting, whole, where)
    except HookFailed as failed:
        yield f"{where}: {failed}"


def _copies(table: NodeTable) -> dict[str, NDArray[Any]]:
    views = table.views
    return {a.name: getattr(views, a.name).copy() for a in attrs.fields(type(views))}


def _subset_problems(
    profile: Profile, waiting: Pod, everything: NodeColumns, whole: _Results, where: str
) -> Iterator[str]:
    count = len(everything)
    for positions in (np.arange(0, count, 2), np.arange(count)[::-1].copy(), np.arange(count)[-1:]):
        part = _ask(profile, waiting, everything.take(positions), everything)
        if part is None:
            continue
        for i, position in enumerate(positions.tolist()):
            name = everything.name(position)
            if _differs(part.statuses, i, whole.statuses, position):
                yield f"{where}: filter says something else about {name!r} when it is shown fewer nodes"
            if part.scores is not None and whole.scores is not None and part.scores[i] != whole.scores[position]:
                yield (
                    f"{where}: score gives {name!r} {part.scores[i]} when it is shown {len(positions)} nodes, "
                    f"{whole.scores[position]} when it is shown all"
                )


def _differs(a: Sequence[Any] | None, i: int, b: Sequence[Any] | None, j: int) -> bool:
    if a is None or b is None:
        return False
    return _comparable(a[i]) != _comparable(b[j])


def _comparable(status: Status | None) -> Hashable:
    return None if status is None else (status.code, tuple(sorted(status.all_reasons)))


def _normalize_problems(
    profile: Profile, waiting: Pod, everything: NodeColumns, scores: NDArray[np.int64], where: str
) -> Iterator[str]:
    (scorer,) = profile.score
    state = CycleState()
    run_pre_filters(profile.pre_filter, waiting, everything, state)
    run_pre_scores(profile.pre_score, waiting, everything, state)
    final = scores.copy() if scorer.normalize is None else call_normalize_score(scorer, waiting, scores.copy(), state)
    check_score_range(scorer, final)
    if scorer.normalize is None or scorer.plugin not in profile.depends_on:
        return
    twice = call_normalize_score(scorer, waiting, np.concatenate([scores, scores]), state)
    if not np.array_equal(twice[: len(scores)], final):
        yield f"{where}: normalize_score looks at how often a score occurs, so scores cannot be cached: drop depends_on"


def _dependency_problems(
    profile: Profile, plugin: str, cluster: _Cluster, waiting: Pod, whole: _Results, where: str
) -> Iterator[str]:
    depends_on = profile.depends_on[plugin]
    signatures = profile.signature(waiting)
    if None in signatures:
        return
    if Input.PODS not in depends_on:
        by_amounts = Input.AMOUNTS in depends_on
        without = _ask_with_guests(profile, waiting, cluster) if by_amounts else whole
        if not _same(
            without, _ask_with_guests(profile, waiting, cluster, labels={"app": "web"}, host_ports=(8080, 80))
        ):
            more = ", and not with their amounts alone" if by_amounts else ""
            yield f"{where}: results change with the pods on a node{more}: depends_on needs Input.PODS"
    if Input.AMOUNTS in depends_on and Input.NODE not in depends_on:
        table = _Cluster(tuple(map(_with_amounts_only, cluster.nodes)), cluster.running).table()
        if not _same(whole, _ask(profile, waiting, NodeColumns(table), NodeColumns(table))):
            yield f"{where}: results change with the node, and not with its amounts alone: depends_on needs Input.NODE"
    if Input.ALL_NODES not in depends_on and len(cluster.nodes) > 1:
        for i, alone in enumerate(cluster.nodes):
            table = _Cluster((alone,), cluster.running).table()
            here = _ask(profile, waiting, NodeColumns(table), NodeColumns(table))
            if here is not None and not _same(_only(whole, i), here):
                yield f"{where}: results about {alone.name!r} change with other nodes: depends_on needs Input.ALL_NODES"
                return


def _with_amounts_only(one: Node) -> Node:
    status = replace(one.status, images=None, declared_features=None)
    return replace(one, metadata=ObjectMeta(name=one.name), spec=NodeSpec(), status=status)


def _ask_with_guests(profile: Profile, waiting: Pod, cluster: _Cluster, **guests: Any) -> _Results | None:
    """The results once every node has one more pod, of the same size and else as *guests* says."""
    table = cluster.table()
    for row in range(table.count):
        guest = pod(f"guest-{row}", cpu="1", memory="1Gi", **guests)
        table.add_pod(row, PodInfo(guest, pod_resources(guest)))
    return _ask(profile, waiting, NodeColumns(table), NodeColumns(table))


def _only(results: _Results, position: int) -> _Results:
    return _Results(
        None if results.statuses is None else results.statuses[position : position + 1],
        None if results.scores is None else results.scores[position : position + 1],
    )


def _same(a: _Results | None, b: _Results | None) -> bool:
    if a is None or b is None:
        return a is b
    if (a.scores is None) != (b.scores is None):
        return False
    return [_comparable(s) for s in a.statuses or ()] == [_comparable(s) for s in b.statuses or ()] and (
        a.scores is None or np.array_equal(a.scores, b.scores)  # type: ignore[arg-type]  # both or neither, see above
    )


def _signature_problems(profile: Profile, cluster: _Cluster, pods: Iterable[Pod]) -> Iterator[str]:
    seen: dict[Hashable, tuple[Pod, _Results | None]] = {}
    for waiting in pods:
        try:
            signature = profile.signature(waiting)
        except HookFailed:
            continue  # reported as a failure of the hook
        if not signature or None in signature:
            continue
        known = seen.get(signature)
        columns = NodeColumns(cluster.table())
        try:
            results = _ask(profile, waiting, columns, columns)
        except HookFailed:
            continue  # reported as a failure of the hook
        if known is None:
            seen[signature] = (waiting, results)
        elif not _same(known[1], results):
            yield f"pods {known[0].name!r} and {waiting.name!r} have one signature but get different results"


def _event_problems(profile: Profile, hooks: Sequence[str]) -> Iterator[str]:
    try:
        table = build_hint_table(profile)
    except PluginError as error:
        yield str(error)
        return
    waiting = pod("waiting")
    for entry in table.entries:
        changes = ((None, None), (None, waiting), (waiting, None)) if entry.event.resource == Resource.POD else ()
        for old, new in changes:
            if entry.hint is None:
                continue
            try:
                call_hint(entry.hint, waiting, old, new)
            except HookFailed as failed:
                if failed.__cause__ is None:  # hints may raise for these objects, but not return something else
                    yield str(failed)
    if "events_to_register" in hooks and not profile.rejector_plugins:
        yield "events_to_register is never asked for: it has no hook that can turn a pod away"
