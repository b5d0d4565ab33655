"""Explains pods of a cluster that runs, or of one from files, without simulating anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.watching.written_objects import written_as
from trio_sched.documents.json_values import Json
from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.commands import Kubectl
from trio_sched.explanation.data import explanation_as_data
from trio_sched.explanation.explanation import Explanation, Waiting, explain, with_scheduler
from trio_sched.explanation.extenders import add_extenders
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import parse_time
from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulation.asked_pods import AskedPods, Name, NoSuchPod, like_each_other
from trio_sched.simulation.cluster_files import DumpedAndChecked
from trio_sched.simulation.explained_kinds import EXPLAINED_KINDS
from trio_sched.simulation.explanations import show_unwatched
from trio_sched.simulation.live.cluster_snapshot import (
    Objects,
    assembled,
    both,
    fill,
    objects_of_dump,
    objects_of_store,
    snapshot_of,
)
from trio_sched.simulation.live.live_snapshot import LiveListing
from trio_sched.simulation.live.live_workloads import OWNERS, LiveWorkloads, possibly_meant
from trio_sched.simulator import ApiServer, populate, trio_clock
from trio_sched.simulator.manifests.manifests import ManifestProblem
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_VERSION
from trio_sched.simulator.storage.object_store import ObjectStore

_MAX_EXPLAINED: Final = 200
"""Pods that are explained at once."""
_MAX_WITH_REMEDIES: Final = 25
"""Those for which changes are tried."""


_DEFAULTS: Final = (
    "this is what the default configuration says; --config FILE takes that of the cluster's scheduler, "
    "--from URL asks a running trio-sched"
)


@frozen(kw_only=True)
class Question:
    """What is asked."""

    settings: DaemonSettings
    names: Sequence[Name] = ()
    """Nothing: all pending pods."""
    namespace: str = ""
    """The namespace of those that are asked about; empty: all of them."""
    nodes: Sequence[str] = ()
    """Nodes to answer for."""
    context: Sequence[str] = ()
    """Flags that kubectl needs for the same cluster."""
    kubernetes_version: str = DEFAULT_VERSION
    """The version of the API server that reads files."""
    is_default: bool = False
    """Whether *settings* are those of a scheduler without a configuration file."""


@frozen(kw_only=True)
class Answer:
    """What is said of pods that are alike."""

    explanation: Json
    pods: tuple[str, ...]
    """All of them."""


@define(eq=False)
class Answers:
    """What is said of all pods that were asked about; those that are most come first."""

    answers: list[Answer] = field(factory=list)
    notes: list[str] = field(factory=list)

    def as_data(self) -> Json:
        """For JSON and YAML."""
        return {
            "explanations": [{**one.explanation, "alike": list(one.pods)} for one in self.answers],
            "notes": list(self.notes),
        }

    @property
    def is_pending(self) -> bool:
        """Whether one of the pods is pending with a cause."""
        causes = (one.explanation["cause"] for one in self.answers)
        return any(cause is not None and cause["fitsNow"] is None for cause in causes)


async def explain_live(
    question: Question, connection: ConnectionSettings, now: datetime, begin: Callable[[str], None]
) -> Answers:
    """Explain pods of a running cluster; nothing is written to it.

    Args:
        question: what is asked.
        connection: how the cluster is reached.
        now: the time of day.
        begin: is told what is done next.

    Raises:
        NoSuchPod: there is no such pod.
        NotListed: pods or nodes may not be listed.
        KubeClientError: the cluster cannot be reached.
        PluginError: a plugin is missing or broken.
    """
    async with (
        assembled(question.settings, now) as assembly,
        connect(connection, component="explain", qps=-1) as client,
    ):
        listing = LiveListing(client, begin)
        pods = await listing.pods()
        workloads = LiveWorkloads(client)
        owners = await workloads.owners_of(possibly_meant(question.names, pods))
        try:
            found = _asked(question, AskedPods(pods, owners))
        except NoSuchPod as missing:
            raise await workloads.explained(missing) from missing
        scores_matter = bool(question.nodes) or any(pod.node_name for pod in found)
        snapshot = await listing.snapshot(pods, found, assembly.loaded.wanted_kinds, scores_matter=scores_matter)
        owners |= await workloads.owners_of(found)
        begin("explaining")
        fill(assembly, snapshot)
        kubectl = Kubectl(flags=question.context, written=written_as(listing.served, EXPLAINED_KINDS))
        asked = AskedPods(pods, owners)
        answers = await _explained(question, assembly, asked, found, now, listing.hidden, kubectl)
        if question.is_default:
            answers.notes.append(_DEFAULTS)
        answers.notes += listing.notes
        answers.notes += await workloads.lacking(question.names)
    return answers


async def explain_manifests(
    question: Question, manifests: DumpedAndChecked, now: datetime, say: Callable[[str], None]
) -> Answers:
    """Explain pods of a cluster from files, as it is there.

    Args:
        question: what is asked.
        manifests: the objects.
        now: the time of day.
        say: takes a line for each pod that has no room in its quota.

    Raises:
        NoSuchPod: there is no such pod.
        ManifestError: an object is refused.
        PluginError: a plugin is missing or broken.
    """

    def leave_out(problem: ManifestProblem) -> None:
        say(f"Warning: left out: {problem}")

    server = ApiServer(trio_clock(now), 0, kubernetes_version=question.kubernetes_version)
    populate(server, manifests.checked, leave_out)
    objects = both(objects_of_dump(manifests.dumped), objects_of_store(server.store))
    async with assembled(question.settings, now) as assembly:
        snapshot = snapshot_of(objects, assembly.loaded.wanted_kinds)
        asked = AskedPods(snapshot.pods, _owners(objects))
        found = _asked(question, asked)
        fill(assembly, snapshot)
        return await _explained(question, assembly, asked, found, now)


async def explain_settled(question: Question, store: ObjectStore, assembly: Assembly, now: datetime) -> Answers:
    """Explain pods of a cluster that has been simulated.

    Args:
        question: what is asked.
        store: the objects.
        assembly: of the scheduler, with the same objects.
        now: the time of day there.

    Raises:
        NoSuchPod: there is no such pod.
    """
    show_unwatched(store, assembly.scheduler)
    objects = objects_of_store(store)
    asked = AskedPods([pod for pod in objects(POD_KIND) if not pod.is_terminal], _owners(objects))
    return await _explained(question, assembly, asked, _asked(question, asked), now)


def _owners(objects: Objects) -> dict[tuple[str, str, str], Any]:
    return {
        (kind, one.metadata.namespace, one.metadata.name): one
        for kind, listed in OWNERS.items()
        for one in objects(listed)
    }


def _asked(question: Question, asked: AskedPods) -> list[Pod]:
    if not question.names:
        return [pod for pod in asked.pending() if question.namespace in ("", pod.namespace)]
    found: dict[str, Pod] = {}
    for name in question.names:
        found.update((pod.key, pod) for pod in asked.named(name))
    return list(found.values())


async def _explained(
    question: Question,
    assembly: Assembly,
    asked: AskedPods,
    pods: Sequence[Pod],
    now: datetime,
    hidden: Mapping[str, str] = MappingProxyType({}),
    kubectl: Kubectl | None = None,
) -> Answers:
    answers, scheduler = Answers(), assembly.scheduler
    adopted = _adopted(scheduler, asked, pods, answers)
    groups = sorted(like_each_other(pods, asked), key=lambda group: -len(group))
    if len(groups) > _MAX_EXPLAINED:
        answers.notes.append(f"there are {len(groups)} kinds of pods; the first {_MAX_EXPLAINED} are explained")
    for number, group in enumerate(groups[:_MAX_EXPLAINED]):
        pod = group[0]
        found = explain(
            scheduler,
            adopted(pod),
            scores_of=question.nodes,
            remedies=number < _MAX_WITH_REMEDIES,
            missing=asked.missing(pod),
        )
        if found.is_pending and found.fits_now:
            await _ask_extenders(assembly, adopted(pod), found)
        found.pod = pod
        found.waiting = waiting_of(pod, asked.pods, now)
        if hidden:
            _doubt(found, scheduler, hidden)
        data = explanation_as_data(found, asked.patched(pod), kubectl or Kubectl(flags=question.context))
        answers.answers.append(Answer(explanation=data, pods=tuple(one.key for one in group)))
    if len(groups) > _MAX_WITH_REMEDIES:
        answers.notes.append(
            f"changes were tried for the first {_MAX_WITH_REMEDIES} only; ask about the others by name"
        )
    return answers


async def _ask_extenders(assembly: Assembly, pod: Pod, found: Explanation) -> None:
    extenders, table = assembly.extenders, assembly.scheduler.cache.table
    if extenders is None or not extenders.is_interested(pod):
        return
    names = found.analysis.names(found.analysis.passes)
    verdicts = await extenders.verdicts(pod, {name: table.nodes[table.row_of[name]] for name in names})
    add_extenders(found, verdicts)


def _doubt(found: Explanation, scheduler: Scheduler, hidden: Mapping[str, str]) -> None:
    """Say of the requirements whose plugins read kinds that are *hidden* that they may be met."""
    analysis = found.analysis
    hints = scheduler.queue.profiles[analysis.profile.name].hints
    for clause in analysis.clauses:
        read = {event.resource.rpartition("/")[2] for event in hints.events_of(clause.plugin)}
        missing = [plural for kind, plural in hidden.items() if kind in read]
        if missing:
            clause.problems.append(f"may be wrong: you may not list {some_names(missing)}, which {clause.plugin} reads")


def _adopted(scheduler: Scheduler, asked: AskedPods, pods: Iterable[Pod], answers: Answers) -> Callable[[Pod], Pod]:
    """Gives a pod of another scheduler that is known to run as one of the first profile's."""
    profiles = scheduler.profiles
    running = {pod.scheduler_name for pod in asked.pods if pod.node_name} - profiles.keys()
    first = next(iter(profiles))
    others = sorted({pod.scheduler_name for pod in pods} & running)
    if others:
        answers.notes.append(
            f"pods of {', '.join(others)} are judged by the profile {first}; --config FILE takes the configuration of "
            "their scheduler"
        )

    def adopted(pod: Pod) -> Pod:
        if pod.scheduler_name not in running:
            return pod
        return with_scheduler(pod, first)

    return adopted


def waiting_of(pod: Pod, pods: Collection[Pod], now: datetime) -> Waiting | None:
    """What the API server knows of how *pod* waits; None if it has a node."""
    if pod.node_name:
        return None
    created = parse_time(pod.metadata.creation_timestamp or "")
    since = None if created is None else max(now.timestamp() - created, 0.0)
    details: list[str] = []
    nominated = pod.nominated_node_name
    if nominated:
        details.append(_nominated(nominated, pods))
    return Waiting(state="", since_seconds=since, details=tuple(details))


def _nominated(node: str, pods: Iterable[Pod]) -> str:
    """What a pod waits for that is nominated to *node*."""
    ending = [pod for pod in pods if pod.node_name == node and pod.metadata.deletion_timestamp is not None]
    if not ending:
        return f"it is nominated to {node}"
    longest = max(pod.metadata.deletion_grace_period_seconds or 0 for pod in ending)
    names = ", ".join(pod.key for pod in ending[:3]) + (", …" if len(ending) > 3 else "")
    verb = "is" if len(ending) == 1 else "are"
    text = f"it is nominated to {node}, where {names} {verb} ending, which takes up to {longest} s"
    held = list(dict.fromkeys(name for pod in ending for name in pod.metadata.finalizers or ()))
    return f"{text}, and until the finalizers {some_names(held)} are removed" if held else text
