"""Why pods are where they are: what each plugin says of each node, as tables and as plain data."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import frozen
from rich.console import RenderableType

from trio_sched.documents.errors import shortened
from trio_sched.engine.evaluation.pod_explanation import PodExplanation
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.objects.pod import Pod
from trio_sched.simulation.missing_pods import missing_pods
from trio_sched.simulation.tables import line, table
from trio_sched.simulator.controllers.workloads.controlled_objects import controller_of
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject

Json = dict[str, Any]

_EXAMPLES: Final = 5
_WORKLOADS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
_BETWEEN: Final = {"ReplicaSet": "replicasets.apps", "Job": "jobs.batch"}
"""Kind → collection of the controllers of pods that may have a controller themselves."""
_SHORTEST_CUT: Final = 40
"""Characters of the names of workloads that are left in those of their pods at least."""
_decode_pod = msgspec.json.Decoder(Pod).decode


class CannotExplain(TrioSchedError):
    """A pod that is not there at the end, or that no scheduler of the simulation places."""


@frozen(kw_only=True)
class Explanation:
    """One pod."""

    pod: str
    """``namespace/name``."""
    node: str
    """Where it is; empty if it is pending."""
    of: PodExplanation


def check_explained(names: Collection[str], manifests: Iterable[Manifest]) -> None:
    """Refuse names of pods and workloads that are not among *manifests*, and of pods that no workload of them makes.

    Raises:
        CannotExplain: there is such a name.
    """
    known: set[str] = set()
    prefixes: set[str] = set()
    for manifest in manifests:
        fields = manifest.fields
        metadata = fields["metadata"]
        prefix = f"{metadata.get('namespace') or 'default'}/"
        if metadata.get("name") and fields["kind"] == "Pod":
            known.add(f"{prefix}{metadata['name']}")
        elif fields["kind"] == "Pod":
            prefixes.add(f"{prefix}{metadata.get('generateName')}")
        elif fields["kind"] in _WORKLOADS:
            # The name of a workload without one is drawn; long ones are cut before something is added.
            name = metadata.get("name") or ""
            if name:
                known.add(f"{prefix}{name}")
            begin = f"{name}-" if name else metadata.get("generateName") or ""
            prefixes.add(f"{prefix}{begin[:_SHORTEST_CUT]}")
    for name in names:
        key = _key_of(name)
        if key not in known and not key.startswith(tuple(prefixes)):
            raise CannotExplain(f"there is no pod or workload {shortened(repr(key))} to explain{_meant(key, known)}")


def _meant(key: str, known: Collection[str]) -> str:
    """What may have been meant: what has that name elsewhere, or a similar one, or makes pods of similar names."""
    namespace, _, name = key.partition("/")
    elsewhere = min((one for one in known if one.endswith(f"/{name}")), default=None)
    here = f"{namespace}/"
    names = {one.removeprefix(here) for one in known if one.startswith(here)}
    near = nearest_name(name, names) or nearest_name(name.rpartition("-")[0], names)
    return f"; did you mean {elsewhere or here + (near or '')!r}?" if elsewhere or near else ""


def _key_of(name: str) -> str:
    return name if "/" in name else f"default/{name}"


def explain_pods(
    store: ObjectStore, scheduler: Scheduler, names: Mapping[str, Collection[str]]
) -> tuple[Explanation, ...]:
    """Explain pods as things stand.

    Args:
        store: the objects.
        scheduler: with the same objects.
        names: ``namespace/name``, or names in the namespace default, of pods or workloads → nodes whose scores are of
            interest in any case. Of a workload one pod is explained, a pending one if there is one.

    Raises:
        CannotExplain: there is no such pod, or its scheduler is not simulated.
    """
    return tuple(_explain(store, scheduler, _key_of(name), nodes) for name, nodes in names.items())


def _pod_of_workload(store: ObjectStore, key: str) -> StoredObject | None:
    """A pod of the workload of that name, one without a node if possible."""
    namespace, _, name = key.partition("/")
    made = (one for one in store.collection("pods").in_order(namespace) if name in _controllers(store, one.fields))
    return min(made, key=lambda one: (bool(one.fields["spec"].get("nodeName")), one.key), default=None)


def _controllers(store: ObjectStore, pod: Json) -> Iterator[str]:
    """The name of the controller of *pod*, and of the Deployment or CronJob that is behind it."""
    controller = controller_of(pod)
    if controller is None:
        return
    yield controller["name"]
    collection = _BETWEEN.get(controller.get("kind") or "")
    between = store.get(collection, f"{pod['metadata']['namespace']}/{controller['name']}") if collection else None
    behind = controller_of(between.fields) if between is not None else None
    if behind is not None:
        yield behind["name"]


def _explain(store: ObjectStore, scheduler: Scheduler, key: str, nodes: Collection[str]) -> Explanation:
    pods = store.collection("pods")
    stored = pods.objects.get(key) or _pod_of_workload(store, key)
    if stored is None:
        for one in missing_pods(store):
            if f"{one.namespace}/{one.workload}" == key:
                raise CannotExplain(f"{one.kind} {key} has no pods, for they could not be created: {one.message}")
        near = nearest_name(key, pods.objects)
        raise CannotExplain(f"there is no pod {key!r} to explain" + (f"; did you mean {near!r}?" if near else ""))
    pod = _decode_pod(stored.encoded(b"{"))
    if pod.scheduler_name not in scheduler.profiles:
        raise CannotExplain(f"pod {pod.key} is of the scheduler {pod.scheduler_name!r}, which is not simulated")
    return Explanation(pod=pod.key, node=pod.node_name, of=scheduler.explain(pod, scores_of=nodes))


def explanation_as_tables(one: Explanation, *, every_node: bool) -> Iterator[RenderableType]:
    """*one* as tables; with a few nodes for each reason, or *every_node*."""
    where = f"is on node {one.node}; this is what plugins say without it there" if one.node else "is pending"
    yield line("")
    yield line(f"Pod {one.pod} {where}", style="bold")
    of = one.of
    if of.rejected is not None:
        yield line(f"{of.rejected.plugin} rejects it at {of.rejected_at}, for all nodes: {of.rejected.message}")
    if of.narrowed_by and of.left_out:
        yield line(f"{', '.join(of.narrowed_by)} left out at PreFilter: {_some(of.left_out, every_node)}")
    if of.verdicts:
        yield _verdicts(of, every_node=every_node)
    if of.nominated:
        yield line(f"Kept for pods that are nominated there: {_some(of.nominated, every_node)}")
    if of.best:
        yield _scores(one)
    if of.error:
        yield line(f"A plugin failed: {of.error}")


def _verdicts(of: PodExplanation, *, every_node: bool) -> RenderableType:
    found = table(
        f"Filters ({of.feasible} of {of.nodes} nodes pass all)", "PLUGIN", "PASS", "REJECTED", right=("PASS",)
    )
    for verdict in of.verdicts:
        if verdict.is_skipped:
            found.add_row(verdict.plugin, "all", "nothing to check for this pod")
            continue
        lines = [
            f"{len(one.nodes)} {one.status.message or one.status.code.label}: {_some(one.nodes, every_node)}"
            for one in verdict.rejections
        ]
        if verdict.error:
            lines.append(f"failed: {verdict.error}")
        found.add_row(verdict.plugin, str(verdict.passed), lines or "-")
    return found


def _scores(one: Explanation) -> RenderableType:
    of = one.of
    title = f"Scores of the best {len(of.best)} of {of.feasible} nodes (score × weight)"
    found = table(title, "NODE", "TOTAL", "SCORES", right=("TOTAL",))
    for score in of.best:
        parts = (f"{plugin} {points}×{of.weights[plugin]}" for plugin, points in score.scores.items())
        found.add_row(f"{score.node} *" if score.node == one.node else score.node, str(score.total), ", ".join(parts))
    return found


def _some(nodes: Sequence[str], every_node: bool) -> str:
    shown = nodes if every_node else nodes[:_EXAMPLES]
    return ", ".join(shown) + (", …" if len(shown) < len(nodes) else "")


def explanation_as_data(one: Explanation) -> Json:
    """*one* for JSON and YAML."""
    of = one.of
    return {
        "pod": one.pod,
        "node": one.node or None,
        "rejected": None
        if of.rejected is None
        else {"plugin": of.rejected.plugin, "extensionPoint": of.rejected_at, "reasons": list(of.rejected.all_reasons)},
        "leftOut": {"plugins": list(of.narrowed_by), "nodes": list(of.left_out)},
        "filters": [
            {
                "plugin": verdict.plugin,
                "skipped": verdict.is_skipped,
                "passed": verdict.passed,
                "rejected": [
                    {
                        "reasons": list(group.status.all_reasons),
                        "code": group.status.code.label,
                        "nodes": list(group.nodes),
                    }
                    for group in verdict.rejections
                ],
                "error": verdict.error or None,
            }
            for verdict in of.verdicts
        ],
        "nominated": list(of.nominated),
        "feasible": of.feasible,
        "best": [
            {
                "node": score.node,
                "total": score.total,
                "scores": [
                    {"plugin": plugin, "score": points, "weight": of.weights[plugin]}
                    for plugin, points in score.scores.items()
                ],
            }
            for score in of.best
        ],
        "error": of.error or None,
    }
