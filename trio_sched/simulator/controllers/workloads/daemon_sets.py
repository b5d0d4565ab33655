"""A simulated daemon set controller: a pod on every node that takes it."""

from typing import Any, ClassVar, Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.nodes.node_matching import is_selected, untolerated
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.controllers.workloads.daemon_pods import (
    NodePods,
    PodRevision,
    daemon_template,
    node_of,
    of_node,
)
from trio_sched.simulator.controllers.workloads.revision_history import REVISION_LABEL, RevisionHistory
from trio_sched.simulator.controllers.workloads.rollout_sizes import scaled, status_of
from trio_sched.simulator.controllers.workloads.workload_controller import (
    REACT_SECONDS,
    WorkloadController,
    without_zeros,
)
from trio_sched.simulator.kubelets.pod_states import (
    is_available,
    is_ready,
    is_terminating,
    unavailable_for,
)
from trio_sched.simulator.pods.pod_phase import is_finished, phase_of
from trio_sched.simulator.storage.object_store import Change, StoredObject

Placements = dict[str, tuple[bool, bool]]
"""Name of a node → whether a pod is started there, and whether one that is there stays."""

_FIRST_BACKOFF_SECONDS: Final = 1.0
_LAST_BACKOFF_SECONDS: Final = 900.0
_COUNTS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


@define(eq=False)
class DaemonSetController(WorkloadController):
    """Creates, replaces and deletes the pods of DaemonSets.

    Args:
        revisions: of their pod templates.
    """

    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "DaemonSet"
    component: ClassVar[str] = "daemonset-controller"

    revisions: ControlledObjects
    _history: RevisionHistory = field(init=False)
    _failures: dict[tuple[str, str], tuple[float, float]] = field(factory=dict, init=False)
    """Key of a set and a node → when its failed pod was deleted last, and how long the next one stays."""
    _changed_nodes: dict[str, None] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._history = RevisionHistory(self, self.revisions, REVISION_LABEL)

    def start(self) -> None:
        """Follow the nodes as well."""
        super().start()
        self.listen("nodes", self._on_node)

    def _on_node(self, change: Change) -> None:
        before = change.previous
        if change.type == "MODIFIED" and before is not None and _placement(before) == _placement(change.current):
            return
        self._changed_nodes[change.current.key] = None
        self._steps.plan(self._look_at_nodes, "", REACT_SECONDS)

    def _look_at_nodes(self, _key: str) -> None:
        """Plan the sets to which changed nodes make a difference; what else their statuses say is put right later."""
        changed, self._changed_nodes = self._changed_nodes, {}
        nodes = [node for key in changed if (node := self.server.store.get("nodes", key)) is not None]
        gone = changed.keys() - {node.key for node in nodes}
        for stored in self.server.store.collection(self.resource.collection).in_order():
            spec = daemon_template(stored, "")["spec"]
            taken = {node_of(pod.fields) for pod in self.pods.of(stored.fields["metadata"]["uid"])}
            status = status_of(stored)
            misplaced = status.get("numberMisscheduled", 0) > 0 or status.get("desiredNumberScheduled", 0) < len(taken)
            if not taken.isdisjoint(gone):
                self.plan(stored.key)
                continue
            for node in nodes:
                starts, stays = _placed(spec, node.fields)
                if (not stays or misplaced) if node.key in taken else starts:
                    self.plan(stored.key)
                    break

    def sync(self, key: str) -> None:
        """Create the pods that nodes lack, delete those that are too many, and go on with a rollout."""
        stored = self.stored(key)
        if stored is None:
            self._failures = {place: one for place, one in self._failures.items() if place[0] != key}
            return
        if is_terminating(stored.fields):
            return
        self._restore_revision(stored)
        latest = self._history.latest(stored)
        digest = (latest.fields["metadata"].get("labels") or {}).get(REVISION_LABEL) or ""
        revision = PodRevision.of(stored, digest)
        spec = daemon_template(stored, digest)["spec"]
        nodes = {one.key: _placed(spec, one.fields) for one in self.server.store.collection("nodes").in_order()}
        try:
            self._manage(stored, nodes, revision)
            if (stored.fields["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
                self._roll(stored, nodes, revision)
        finally:
            self._write_status(stored, nodes, revision)
        current = latest.fields["metadata"]["name"]
        stem = current.removesuffix(digest)
        in_use = {f"{stem}{_hash_of(pod)}" for pods in self._pods(stored).values() for pod in pods}
        self._history.truncate(stored, {current}, in_use)

    def _restore_revision(self, stored: StoredObject) -> None:
        """Give a set of a dump without ControllerRevisions the one that its newest pod is of."""
        metadata = stored.fields["metadata"]
        seen = status_of(stored).get("observedGeneration") == metadata.get("generation")
        pods = self.pods.of(metadata["uid"])
        if not seen or not pods or self._history.of(stored):
            return
        newest = max(pods, key=lambda pod: (pod.fields["metadata"].get("creationTimestamp") or "", pod.key))
        if _hash_of(newest):
            self._history.restore(stored, f"{metadata['name']}-{_hash_of(newest)}", _hash_of(newest), 1)

    def _pods(self, stored: StoredObject) -> dict[str, list[StoredObject]]:
        """The pods of a set by their nodes, the one that counts first."""
        found: dict[str, list[StoredObject]] = {}
        for pod in self.claim(stored, self.selector_of(stored.fields), self.pods):
            node = node_of(pod.fields)  # there is none for one that was adopted and waits
            if node and not (is_terminating(pod.fields) and is_finished(pod.fields)):
                found.setdefault(node, []).append(pod)
        for pods in found.values():
            pods.sort(key=_standing)
        return found

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _manage(self, stored: StoredObject, nodes: Placements, revision: PodRevision) -> None:
        pods, template = self._pods(stored), daemon_template(stored, revision.digest)
        lacking: list[str] = []
        for name, (starts, stays) in nodes.items():
            there = pods.get(name, [])
            if starts and not there:
                lacking.append(name)
            elif stays:
                lacking += self._keep_one(stored, name, there, revision, starts=starts)
            else:
                for pod in there:
                    self.delete_pod(stored, pod)
        for name, left in pods.items():
            for pod in left:
                if name not in nodes and not pod.fields["spec"].get("nodeName"):
                    self.delete_pod(stored, pod)
        for number, name in enumerate(lacking):
            self.create_pod(stored, of_node(template, name), checked=number > 0)

    def _keep_one(
        self, stored: StoredObject, node: str, pods: list[StoredObject], revision: PodRevision, *, starts: bool
    ) -> list[str]:
        """Delete what is too much on a node; the answer is the node if it lacks a pod."""
        running = []
        for pod in pods:
            if is_terminating(pod.fields):
                continue
            if phase_of(pod.fields) == "Failed":
                self._delete_failed(stored, node, pod)
            elif phase_of(pod.fields) == "Succeeded":
                what = f"{pod.fields['metadata']['namespace']}/{pod.fields['metadata']['name']} on node {node}"
                self.tell(stored, "SucceededDaemonPod", f"Found succeeded daemon pod {what}, will try to delete it")
                self.delete_pod(stored, pod)
            else:
                running.append(pod)
        if not self._limits(stored, 1)[0]:
            for pod in running[1:]:
                self.delete_pod(stored, pod)
            return []
        if not running:
            return [node] if starts else []
        found = NodePods.of(running, PodRevision(revision.digest, None))  # of two pods, the label tells which is new
        for pod in found.others:
            self.delete_pod(stored, pod)
        new, old = found.new, found.old
        if new is not None and old is not None and (not is_ready(old.fields) or self._is_available(stored, new)):
            self.delete_pod(stored, old)
        return []

    def _delete_failed(self, stored: StoredObject, node: str, pod: StoredObject) -> None:
        now = self.server.state.now().timestamp()
        since, wait = self._failures.get((stored.key, node), (now, 0.0))
        if now < since + wait:
            self.plan_after(stored.key, since + wait - now)
            return
        forgotten = now > since + 2 * _LAST_BACKOFF_SECONDS
        longer = _FIRST_BACKOFF_SECONDS if forgotten or not wait else min(2 * wait, _LAST_BACKOFF_SECONDS)
        self._failures[stored.key, node] = (now, longer)
        what = f"{pod.fields['metadata']['namespace']}/{pod.fields['metadata']['name']} on node {node}"
        self.warn(stored, "FailedDaemonPod", f"Found failed daemon pod {what}, will try to kill it")
        self.delete_pod(stored, pod)

    # --- rollouts ---------------------------------------------------------------------------------------------------

    def _limits(self, stored: StoredObject, wanted: int) -> tuple[int, int]:
        """How many nodes may have two pods, and how many may have none that is available."""
        strategy = stored.fields["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return 0, 0
        rules = strategy.get("rollingUpdate") or {}
        surge = scaled(rules.get("maxSurge", 0), wanted, up=True)
        unavailable = scaled(rules.get("maxUnavailable", 1), wanted, up=True)
        return (surge, unavailable) if surge or unavailable else (0, 1)

    def _is_available(self, stored: StoredObject, pod: StoredObject) -> bool:
        return is_available(pod.fields, stored.fields["spec"].get("minReadySeconds", 0), self.now())

    def _roll(self, stored: StoredObject, nodes: Placements, revision: PodRevision) -> None:
        pods = self._pods(stored)
        starting = {name for name, (starts, _stays) in nodes.items() if starts}
        surge, unavailable = self._limits(stored, len(starting))
        found = {
            name: NodePods.of([pod for pod in pods.get(name, []) if not is_terminating(pod.fields)], revision)
            for name in sorted(starting | {name for name in pods if name})
        }
        if surge:
            self._roll_with_surge(stored, found, starting, revision, surge)
            return
        candidates = []
        for one in found.values():
            only = one.old if one.new is None else one.new
            if one.others or only is None or (one.old is not None and one.new is not None):
                unavailable -= 1
            elif one.new is not None:
                unavailable -= not self._is_available(stored, one.new)
            elif self._is_available(stored, only):
                candidates.append(only)
            else:
                unavailable -= 1
                self.delete_pod(stored, only)
        for pod in candidates[: max(unavailable, 0)]:
            self.delete_pod(stored, pod)

    def _roll_with_surge(
        self, stored: StoredObject, found: dict[str, NodePods], starting: set[str], revision: PodRevision, surge: int
    ) -> None:
        candidates, lacking, leaving, available = [], [], [], 0
        for name, one in found.items():
            if one.others:
                surge -= 1
                continue
            counting = one.old or one.new
            available += counting is not None and self._is_available(stored, counting)
            if one.old is None:
                continue
            if one.new is not None:
                if self._is_available(stored, one.new):
                    self.delete_pod(stored, one.old)
                else:
                    surge -= 1
            elif self._is_available(stored, one.old):
                if name in starting:
                    candidates.append(name)
                else:
                    leaving.append(one.old)
            elif name in starting:
                lacking.append(name)
            else:
                self.delete_pod(stored, one.old)
        for pod in leaving[: max(available - len(starting), 0)]:
            self.delete_pod(stored, pod)
        template = daemon_template(stored, revision.digest)
        for name in lacking + candidates[: max(surge, 0)]:
            self.create_pod(stored, of_node(template, name))

    # --- status -----------------------------------------------------------------------------------------------------

    def _write_status(self, stored: StoredObject, nodes: Placements, revision: PodRevision) -> None:
        pods, counts = self._pods(stored), dict.fromkeys((*_COUNTS, "updatedNumberScheduled", "numberAvailable"), 0)
        for name, (starts, _stays) in nodes.items():
            there = pods.get(name, [])
            if not starts:
                counts["numberMisscheduled"] += bool(there)
                continue
            counts["desiredNumberScheduled"] += 1
            if there:
                counts["currentNumberScheduled"] += 1
                counts["numberReady"] += is_ready(there[0].fields)
                counts["numberAvailable"] += self._is_available(stored, there[0])
                counts["updatedNumberScheduled"] += revision.has(there[0])
        status: Json = {
            **counts,
            "numberUnavailable": counts["desiredNumberScheduled"] - counts["numberAvailable"],
            "observedGeneration": stored.fields["metadata"].get("generation", 0),
        }
        self.write_status(stored, without_zeros(status, *_COUNTS))
        seconds, now = stored.fields["spec"].get("minReadySeconds", 0), self.now()
        waits = [unavailable_for(pod.fields, seconds, now) for there in pods.values() for pod in there]
        later = [wait for wait in waits if wait]
        if later:
            self.plan_after(stored.key, min(later))


def _hash_of(pod: StoredObject) -> str:
    digest: str = (pod.fields["metadata"].get("labels") or {}).get(REVISION_LABEL) or ""
    return digest


def _placed(spec: Json, node: Json) -> tuple[bool, bool]:
    if spec.get("nodeName") not in (None, "", node["metadata"]["name"]) or not is_selected(spec, node):
        return False, False
    if untolerated(spec, node, "NoExecute", "NoSchedule"):
        return False, not untolerated(spec, node, "NoExecute")
    return True, True


def _placement(node: StoredObject) -> tuple[Any, Any]:
    """What decides whether a node takes pods of a set."""
    return node.fields["metadata"].get("labels"), (node.fields.get("spec") or {}).get("taints")


def _standing(pod: StoredObject) -> tuple[bool, str, str]:
    """The order of pods on one node: bound ones before others, older ones before younger ones."""
    created = pod.fields["metadata"].get("creationTimestamp") or ""
    return not pod.fields["spec"].get("nodeName"), created, pod.key
