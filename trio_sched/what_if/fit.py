"""How many copies of a pod fit: the engine decides on one after the other, and assumes each on its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import trio
from attrs import frozen
from msgspec import structs

from trio_sched.documents.json_values import Json
from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import TrioSchedError
from trio_sched.explanation.data import explanation_as_data
from trio_sched.explanation.explanation import explain
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.objects.node_pools import pool_name
from trio_sched.objects.pod import Pod
from trio_sched.simulation.live.cluster_snapshot import ClusterSnapshot, assembled, fill, objects_of_store
from trio_sched.simulation.node_usage import ZONE_LABEL
from trio_sched.simulation.report.sections import Names, Section
from trio_sched.simulation.simulated_run import Plan, scheduler_names
from trio_sched.simulation.units import plural
from trio_sched.simulator import ApiServer, populate, trio_clock
from trio_sched.simulator.manifests.dumps import path_of_pod_spec
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import copied
from trio_sched.what_if.answer import Answer
from trio_sched.what_if.plan_snapshot import snapshot_of_plan

_READ_BY_ADMISSION: Final = ("Namespace", "PriorityClass", "LimitRange", "RuntimeClass")
"""Kinds that change what a new pod looks like."""
_MOST_COPIES: Final = 1_000_000
"""Where it ends if nothing limits the copies, because the configuration has no plugin that counts resources."""
_STEP: Final = 100
"""Copies between two reports of progress."""


class NotOnePod(TrioSchedError):
    """Files do not have exactly one pod or workload, or one whose copies differ in more than their names."""


class OtherScheduler(TrioSchedError):
    """The pod is for a scheduler that has no profile."""


@frozen(kw_only=True)
class Fit:
    """Where copies of a pod found room."""

    nodes: Mapping[str, int]
    """Node → how many of them; the nodes of the cluster, in order."""
    zones: Mapping[str, tuple[int, int]]
    """Zone → its nodes, and the copies there."""
    pools: Mapping[str, tuple[int, int]]
    limit: str
    """Why the next one does not fit; empty if it was not asked for."""
    refusals: Sequence[tuple[str, int]]
    """What refuses the next one → on how many nodes it is the first thing that does."""

    @property
    def copies(self) -> int:
        """How many fit."""
        return sum(self.nodes.values())


def pod_template(manifests: Sequence[Manifest]) -> Manifest:
    """The one pod or workload among *manifests*, as a pod.

    Raises:
        NotOnePod: there is none, there are several, or its copies need volumes or devices of their own.
    """
    found = [one for one in manifests if path_of_pod_spec(one.fields)]
    if len(found) != 1:
        names = f": {', '.join(one.what for one in found[:5])}" if found else ""
        raise NotOnePod(f"give one pod or workload to copy; the files have {len(found)}{names}")
    fields = found[0].fields
    pod = fields
    for step in path_of_pod_spec(fields)[:-1]:
        pod = pod[step]
    metadata = pod.get("metadata") or {}
    spec = copied(pod["spec"])
    spec.pop("nodeName", None)
    templates = [one for one in spec.get("resourceClaims") or () if one.get("resourceClaimTemplateName")]
    if templates or fields["spec"].get("volumeClaimTemplates"):
        raise NotOnePod(
            f"{found[0].what}: each copy gets volumes or devices of its own, which only controllers make; "
            "use what-if apply with as many replicas"
        )
    kept = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    named = {"name": fields["metadata"].get("name") or "copy", **kept}
    if namespace := fields["metadata"].get("namespace"):
        named["namespace"] = namespace
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}
    return Manifest(made, found[0].source, found[0].document, found[0].items)


def admitted(template: Manifest, cluster: Iterable[Manifest], server: ApiServer) -> Pod:
    """The pod that *server*, which is empty, makes of *template* in *cluster*: with priority, defaults and overhead.

    Raises:
        ManifestError: the pod is refused.
    """
    read = (one for one in cluster if one.fields.get("kind") in _READ_BY_ADMISSION)
    populate(server, [*(Manifest(copied(one.fields)) for one in read), template])
    pod: Pod = next(iter(objects_of_store(server.store)(POD_KIND)))
    return pod


def fit_in_cluster(plan: Plan, template: Manifest, count: int | None, progress: Callable[[int, int], None]) -> Fit:
    """How many copies of *template* fit into the cluster of *plan*; see `fit_copies`.

    Raises:
        OtherScheduler: the pod is for a scheduler that has no profile.
        ManifestError: the pod or an object of the cluster is refused.
        TrioSchedError: a plugin is missing or broken; possibly in an exception group.
    """
    pod = trio.run(_admitted, plan, template)  # first: the objects of a plan become the store's when it is simulated
    names = scheduler_names(plan.settings)
    if pod.scheduler_name not in names:
        raise OtherScheduler(
            f"the pod is for the scheduler {pod.scheduler_name}; the configuration has {', '.join(names)}"
        )
    return trio.run(_fit, plan, snapshot_of_plan(plan), pod, count, progress)


async def _admitted(plan: Plan, template: Manifest) -> Pod:
    return admitted(template, plan.manifests, ApiServer(trio_clock(plan.begins), plan.seed))


async def _fit(
    plan: Plan, snapshot: ClusterSnapshot, pod: Pod, count: int | None, progress: Callable[[int, int], None]
) -> Fit:
    async with assembled(plan.settings, plan.begins) as assembly:
        fill(assembly, snapshot)
        return fit_copies(assembly.scheduler, pod, count, progress)


def fit_copies(scheduler: Scheduler, pod: Pod, count: int | None, progress: Callable[[int, int], None]) -> Fit:
    """Place copies of *pod* one after the other, as many as fit.

    Args:
        scheduler: with the cluster in its cache; it has the copies there, too, afterwards.
        pod: without a node, of a scheduler that has a profile.
        count: how many are asked for; None: as many as fit.
        progress: is told how many have a node, of how many.
    """
    placed: Counter[str] = Counter()
    number = 0
    while number < (_MOST_COPIES if count is None else count):
        copy = _copy(pod, number)
        info = QueuedPodInfo(pod=copy, timestamp=0.0)
        decision = scheduler.decide(info)
        if not isinstance(decision, ScheduleResult):
            break
        if isinstance(scheduler.assume_and_reserve(copy, decision, now=0.0), SchedulingFailure):
            break
        placed[decision.node_name] += 1
        number += 1
        if number % _STEP == 0:
            progress(number, count or number)
    complete = number >= (_MOST_COPIES if count is None else count)
    cause = None if complete else _cause(scheduler, _copy(pod, number))
    nodes = scheduler.cache.table.nodes
    names = {node.name: (node.labels.get(ZONE_LABEL, "-"), pool_name(node) or "-") for node in nodes}
    return Fit(
        nodes={name: placed[name] for name in names},
        zones=_grouped(placed, {name: zone for name, (zone, _pool) in names.items()}),
        pools=_grouped(placed, {name: pool for name, (_zone, pool) in names.items()}),
        limit="" if cause is None else cause["cause"]["text"],
        refusals=[] if cause is None else [(one["clause"], one["nodes"]) for one in cause["funnel"]],
    )


def _copy(pod: Pod, number: int) -> Pod:
    name = f"{pod.name}-{number}"
    return structs.replace(pod, metadata=structs.replace(pod.metadata, name=name, uid=f"{pod.uid}-{number}"))


def _cause(scheduler: Scheduler, pod: Pod) -> Json:
    return explanation_as_data(explain(scheduler, pod, scores_of=(), remedies=False))


def _grouped(placed: Mapping[str, int], group_of: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    nodes, copies = Counter(group_of.values()), Counter[str]()
    for name, number in placed.items():
        copies[group_of[name]] += number
    return {group: (nodes[group], copies[group]) for group in sorted(nodes)}


def fit_answer(question: str, fit: Fit, count: int | None) -> Answer:
    """*fit* as an answer."""
    wanted = "" if count is None else f" of {count}"
    sentences = [f"{plural(fit.copies, 'copy')}{wanted} would get a node"]
    if fit.limit:
        sentences.append(f"the next one would not: {fit.limit}")
    return Answer(
        question=question,
        works=count is None or fit.copies >= count,
        sentences=tuple(sentences),
        sections=tuple(_sections(fit)),
    )


def _sections(fit: Fit) -> Iterator[Section]:
    for key, title, groups in (("pools", "Pools", fit.pools), ("zones", "Zones", fit.zones)):
        named = {name: of for name, of in groups.items() if name != "-" or len(groups) > 1}
        yield Section(
            key,
            title,
            heads=(title[:-1], "Nodes", "Copies"),
            keys=("name", "nodes", "copies"),
            numbers=("Nodes", "Copies"),
            rows=[(name, nodes, copies) for name, (nodes, copies) in named.items()],
        )
    yield Section(
        "limits",
        "What refuses the next one",
        heads=("Requirement", "Nodes"),
        keys=("requirement", "nodes"),
        numbers=("Nodes",),
        rows=list(fit.refusals),
    )
    yield Section(
        "nodes",
        "Nodes",
        heads=("Copies", "Nodes"),
        keys=(),
        numbers=("Copies",),
        rows=[(number, Names(tuple(names))) for number, names in _by_copies(fit)],
    )
    yield Section(
        "nodesOfCopies",
        "Nodes",
        heads=("Node", "Copies"),
        keys=("node", "copies"),
        rows=[(name, number) for name, number in fit.nodes.items() if number],
        is_shown=False,
    )


def _by_copies(fit: Fit) -> list[tuple[int, list[str]]]:
    groups: dict[int, list[str]] = {}
    for name, number in fit.nodes.items():
        groups.setdefault(number, []).append(name)
    return sorted(groups.items(), reverse=True)
