"""Why pods are where they are: what each plugin says of each node."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

import msgspec
from attrs import frozen
from msgspec import to_builtins

from trio_sched.documents.json_values import Json
from trio_sched.engine.evaluation.pod_explanation import PodExplanation
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.explanation.commands import Workload, workload_of
from trio_sched.explanation.data import explanation_as_data
from trio_sched.explanation.explanation import explain
from trio_sched.go.text import shortened
from trio_sched.objects.pod import Pod
from trio_sched.simulation.explained_kinds import EXPLAINED_KINDS
from trio_sched.simulation.missing_pods import missing_pods
from trio_sched.simulator.controllers.workloads.controlled_objects import controller_of
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject
from trio_sched.simulator.storage.resource_types import collection_of

_WORKLOADS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)
_BETWEEN: Final = {"ReplicaSet": "replicasets.apps", "Job": "jobs.batch"}
"""Kind → collection of the controllers of pods that may have a controller themselves."""
PENDING: Final = "pending"
"""Stands for a pending pod of each workload."""
_MOST: Final = 50
"""Pods that are explained for one name."""
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
    """What every plugin says."""
    why: Json
    """Cause, evidence, and changes that were tried; see `trio_sched.explanation.data`."""


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
        if name != PENDING and not _is_pattern(key) and key not in known and not key.startswith(tuple(prefixes)):
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


def _is_pattern(name: str) -> bool:
    return any(letter in name for letter in "*?[")


def explain_pods(
    store: ObjectStore,
    scheduler: Scheduler,
    names: Mapping[str, Collection[str]],
    say: Callable[[str], None] = lambda _line: None,
) -> tuple[Explanation, ...]:
    """Explain pods as things stand.

    Args:
        store: the objects.
        scheduler: with the same objects.
        names: ``namespace/name``, or names in the namespace default, of pods or workloads → nodes whose scores are of
            interest in any case. Of a workload one pod is explained, a pending one if there is one. A name may be a
            pattern with ``*``, ``?`` and ``[…]`` for pods, or `PENDING` for one pending pod of each workload.
        say: takes a line when more pods are meant than are explained.

    Raises:
        CannotExplain: there is no such pod, or its scheduler is not simulated.
    """
    show_unwatched(store, scheduler)
    explained: dict[str, Explanation] = {}
    for name, nodes in names.items():
        keys = _matching(store, scheduler, name)
        if len(keys) > _MOST:
            say(f"Note: {name} stands for {len(keys)} pods; the first {_MOST} are explained")
        for key in keys[:_MOST]:
            explained.setdefault(key, _explain(store, scheduler, key, nodes))
    return tuple(explained.values())


def show_unwatched(store: ObjectStore, scheduler: Scheduler) -> None:
    """Put the objects of kinds that no scheduler reads where explanations look for them."""
    cache = scheduler.object_cache
    for name, kind in EXPLAINED_KINDS.items():
        cache.add_kind(name)
        for stored in store.collection(collection_of(kind.group, kind.version, kind.plural)).in_order():
            one = msgspec.json.decode(stored.encoded(b"{"), type=kind.type)
            cache.put(name, one.metadata.name, one.metadata.namespace, one)


def _matching(store: ObjectStore, scheduler: Scheduler, name: str) -> list[str]:
    """The keys that *name* stands for.

    Raises:
        CannotExplain: it is a pattern that no pod matches.
    """
    pods = [
        one for one in store.collection("pods").in_order() if one.fields["spec"]["schedulerName"] in scheduler.profiles
    ]
    if name == PENDING:
        first: dict[tuple[str, str], str] = {}
        for one in pods:
            if not one.fields["spec"].get("nodeName"):
                *_, workload = [one.key, *_controllers(store, one.fields)]
                first.setdefault((one.fields["metadata"]["namespace"], workload), one.key)
        return list(first.values())
    key = _key_of(name)
    if not _is_pattern(key):
        return [key]
    keys = [one.key for one in pods if fnmatchcase(one.key, key)]
    if not keys:
        raise CannotExplain(f"no pod matches {shortened(repr(key))}; write NAMESPACE/NAME, as in shop/web-*")
    return keys


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
    found = explain(scheduler, pod, scores_of=nodes)
    why = explanation_as_data(found, _workload(store, pod))
    return Explanation(pod=pod.key, node=pod.node_name, of=found.plugins, why=why)


def _workload(store: ObjectStore, pod: Pod) -> Workload | None:
    """What makes *pod*."""
    names = list(_controllers(store, to_builtins(pod)))
    controller = next((one for one in pod.metadata.owner_references or () if one.controller), None)
    if controller is None:
        return None
    behind = {"ReplicaSet": "Deployment", "Job": "CronJob"}.get(controller.kind)
    return Workload(kind=behind or controller.kind, name=names[-1]) if len(names) > 1 else workload_of(pod, None)
