"""Drives the scheduling queue through a recorded trace and compares its state after every step."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from golden_objects import event_of, object_of
from golden_profiles import profiles_of

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.pre_enqueue import ProfileQueueing
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import HintEntry, HintTable, build_hint_table
from trio_sched.engine.queue.scheduling_queue import AlreadyQueued, SchedulingQueue
from trio_sched.plugin_api import Hint, Pod, QueuedPod, Status, unresolvable

Step = Mapping[str, Any]


class TraceReplay:
    """One trace; `disagreements` yields a line for each step that differs."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.steps: list[Step] = case["steps"]
        self.objects = {key: object_of(value) for key, value in case["objects"].items()}
        self.ids = {id(value): key for key, value in self.objects.items()}
        self.listed: dict[str, Pod] = {}
        self.closed_gates: set[tuple[str, str]] = set()
        self.popped: dict[str, QueuedPodInfo] = {}
        self.recorded_pods: dict[str, Any] = {}
        options, gates = case["options"], case["featureGates"]
        pop_from_backoff = gates.get("SchedulerPopFromBackoffQ", True)
        profiles = _real_profiles(case) if "profiles" not in case else self._fake_profiles(case["profiles"])
        self.profile_names = list(profiles)
        self.queue = SchedulingQueue(
            get_unassigned_pod=self.listed.get,
            backoff=Backoff(
                options["podInitialBackoffSeconds"], options["podMaxBackoffSeconds"], align_to_window=pop_from_backoff
            ),
            max_in_unschedulable_seconds=options["podMaxInUnschedulablePodsSeconds"],
            pop_from_backoff=pop_from_backoff,
            groups_skip_hints=gates.get("GenericWorkload", False),
        )
        self.queue.install_queueing(profiles, BoundHook("PrioritySort", "queue_sort", _priority_sort))

    # --- the fake plugins of the recording --------------------------------------------------------------------------

    def _fake_profiles(self, recorded: Mapping[str, Any]) -> dict[str, ProfileQueueing]:
        return {name: self._profile(plugins) for name, plugins in recorded.items()}

    def _profile(self, plugins: Mapping[str, Any]) -> ProfileQueueing:
        entries = [
            HintEntry(name, event_of(event), _hint(name, event["hint"]))
            for name, plugin in plugins.items()
            for event in plugin.get("events") or ()
        ]
        gates = [
            BoundHook(name, "pre_enqueue", self._gate(name, plugin["preEnqueue"]))
            for name, plugin in plugins.items()
            if plugin.get("preEnqueue")
        ]
        return ProfileQueueing(gates, HintTable(tuple(entries)))

    def _gate(self, name: str, kind: str) -> Any:
        def pre_enqueue(pod: Pod) -> Status | None:
            if kind == "gates":
                closed = bool(pod.spec.scheduling_gates)
            elif kind == "external":
                closed = (name, pod.key) in self.closed_gates
            else:
                closed = pod.labels.get(kind.removeprefix("label:")) == "closed"
            return unresolvable("closed") if closed else None

        return pre_enqueue

    # --- steps ------------------------------------------------------------------------------------------------------

    def disagreements(self) -> Iterator[str]:
        for number, step in enumerate(self.steps):
            before = dict(self.queue.counters.incoming)
            result = getattr(self, f"_{_snake(step['op'])}")(step, step["t"] / 1000)
            where = f"step {number} {step['op']} at {step['t']}"
            if "result" in step and result != step["result"]:
                yield f"{where}: result: expected {step['result']}, got {result}"
            after = self.queue.counters.incoming
            incoming = {
                f"{q}/{e}": n - before.get((q, e), 0) for (q, e), n in after.items() if n != before.get((q, e), 0)
            }
            if incoming != step.get("incoming", {}):
                yield f"{where}: incoming: expected {step.get('incoming', {})}, got {incoming}"
            yield from (f"{where}: {line}" for line in self._compare_state(step["state"]))

    def _add(self, step: Step, now: float) -> None:
        pod = self.objects[step["new"]]
        self.listed[pod.key] = pod
        self.queue.add(pod, now=now)

    def _update(self, step: Step, now: float) -> None:
        new = self.objects[step["new"]]
        self.listed[new.key] = new
        self.queue.update(self.objects[step["old"]], new, now=now)

    def _delete(self, step: Step, now: float) -> None:
        old = self.objects[step["old"]]
        if not step.get("keepInLister"):
            self.listed.pop(old.key, None)
        self.queue.delete(old)

    def _lister(self, step: Step, now: float) -> None:
        new = self.objects[step["new"]]
        self.listed[new.key] = new

    def _pop(self, step: Step, now: float) -> Any:
        if not self.queue.has_next and not self.queue.closed:
            return {"blocks": True}
        return self._popped(self.queue.pop())

    def _pop_specific(self, step: Step, now: float) -> Any:
        return self._popped(self.queue.pop_specific(self.objects[step["pod"]], now=now))

    def _popped(self, info: QueuedPodInfo | None) -> Any:
        if info is None:
            return {"pod": None}
        self.popped[info.uid] = info
        return {
            "pod": info.key,
            "uid": info.uid,
            "object": self.ids[id(info.pod)],
            "attempts": info.attempts,
            "unschedulablePlugins": sorted(info.unschedulable_plugins),
            "pendingPlugins": sorted(info.pending_plugins),
            "flushed": info.was_flushed,
        }

    def _done(self, step: Step, now: float) -> None:
        self.queue.done(step["uid"])

    def _add_unschedulable(self, step: Step, now: float) -> Any:
        info = self.popped[step["uid"]]
        info.unschedulable_plugins = set(step["unschedulablePlugins"])
        info.pending_plugins = set(step["pendingPlugins"])
        info.gating_plugin = ""
        info.replace_pod(self.objects[step["object"]])
        try:
            self.queue.add_unschedulable(info, now=now)
        except AlreadyQueued as exc:
            return {"error": str(exc)}
        return None

    def _move_all(self, step: Step, now: float) -> None:
        check = step.get("preCheck")
        only = None if check is None else lambda pod: pod.priority <= check["maxPriority"]
        old, new = (self.objects[step[which]] if step.get(which) else None for which in ("old", "new"))
        self.queue.move_all(event_of(step["event"]), old, new, now=now, only=only)

    def _activate(self, step: Step, now: float) -> None:
        self.queue.activate([self.objects[key] for key in step["pods"]], now=now)

    def _flush_backoff(self, step: Step, now: float) -> None:
        self.queue.flush_backoff(now=now)

    def _flush_unschedulable(self, step: Step, now: float) -> None:
        self.queue.flush_unschedulable(now=now)

    def _nominate(self, step: Step, now: float) -> None:
        node = step["node"] if step["mode"] == "override" else None
        self.queue.nominator.add(self.objects[step["pod"]], node)

    def _delete_nominated(self, step: Step, now: float) -> None:
        self.queue.nominator.delete(self.objects[step["pod"]].uid)

    def _nominated_pods_for_node(self, step: Step, now: float) -> Any:
        answer = []
        for found in self.queue.nominated_pods(step["node"]):
            queued = isinstance(found, QueuedPodInfo)
            answer.append({"pod": found.key, "object": self.ids[id(found.pod)] if queued else None})
        return answer

    def _set_gate(self, step: Step, now: float) -> None:
        gate = (step["plugin"], step["pod"])
        (self.closed_gates.add if step["closed"] else self.closed_gates.discard)(gate)

    def _close(self, step: Step, now: float) -> None:
        self.queue.close()

    # --- state ------------------------------------------------------------------------------------------------------

    def _compare_state(self, expected: Mapping[str, Any]) -> Iterator[str]:
        queue = self.queue
        waiting = queue.unschedulable.values()
        backoff = [{"pod": i.key, "readyAt": _ready_at(i)} for i in queue.backing_off.pod_backoff_q]
        errors = sorted(queue.backing_off.pod_error_backoff_q, key=lambda i: (i.sort_time, i.key))  # ties as recorded
        backoff += [{"pod": i.key, "readyAt": _ready_at(i), "error": True} for i in errors]
        markers: list[Any] = []
        for entry in queue.in_flight:
            markers.append({"pod": entry[0], "uid": entry[1]} if isinstance(entry, tuple) else {"event": entry.label})
        actual = {
            "active": [i.key for i in queue.active],
            "backoff": backoff,
            "unschedulable": sorted(i.key for i in waiting if not i.gating_plugin),
            "gated": sorted(({"pod": i.key, "plugin": i.gating_plugin} for i in waiting if i.gating_plugin), key=str),
            "nominated": {node: [pod.key for pod in pods.values()] for node, pods in queue.nominator.nodes.items()},
            "inFlight": markers,
            "cycle": queue.scheduling_cycle,
            "unschedulableGauge": self._gauge(),
        }
        expected = {**expected, "gated": sorted(expected["gated"], key=lambda gated: str({**gated}))}
        for key, value in actual.items():
            wanted = expected[key]
            if key == "gated":
                value, wanted = (sorted(v, key=lambda g: g["pod"]) for v in (value, wanted))
            if value != wanted:
                yield f"{key}: expected {wanted}, got {value}"
        self.recorded_pods.update(expected.get("pods", {}))
        for info in (*queue.active, *queue.backing_off.pod_backoff_q, *queue.backing_off.pod_error_backoff_q, *waiting):
            wanted = self.recorded_pods.get(info.key)
            if wanted != self._record(info):
                yield f"pods[{info.key}]: expected {wanted}, got {self._record(info)}"

    def _gauge(self) -> dict[str, int]:
        several = len(self.profile_names) > 1
        return {
            f"{profile}/{plugin}" if several else plugin: value
            for (plugin, profile), value in self.queue.counters.unschedulable.items()
            if value and profile in self.profile_names  # the gauges of other profiles were not recorded
        }

    def _record(self, info: QueuedPodInfo) -> dict[str, Any]:
        return {
            "uid": info.uid,
            "object": self.ids[id(info.pod)],
            "timestamp": round(info.timestamp * 1000),
            "firstAttemptAt": None
            if info.initial_attempt_timestamp is None
            else round(info.initial_attempt_timestamp * 1000),
            "attempts": info.attempts,
            "unschedulableCount": info.unschedulable_count,
            "consecutiveErrors": info.consecutive_errors,
            "unschedulablePlugins": sorted(info.unschedulable_plugins),
            "pendingPlugins": sorted(info.pending_plugins),
            "flushed": info.was_flushed,
        }


def _real_profiles(case: Mapping[str, Any]) -> dict[str, ProfileQueueing]:
    """The default profile, whose plugins know the objects of the trace's cluster."""
    objects: dict[str, list[Any]] = {}
    for recorded in case["cluster"]:
        objects.setdefault(recorded["kind"], []).append(object_of(recorded))
    return {
        name: ProfileQueueing(profile.pre_enqueue, build_hint_table(profile))
        for name, profile in profiles_of(case, objects).items()
    }


def _priority_sort(queued: QueuedPod) -> tuple[int, float]:
    return -queued.pod.priority, queued.timestamp


def _ready_at(info: QueuedPodInfo) -> int | None:
    return None if info.sort_time == -math.inf else round(info.sort_time * 1000)


def _snake(op: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in op)


def _hint(name: str, kind: str) -> BoundHook:
    def hint(pod: Pod, old: Any, new: Any) -> Hint:
        subject = new if new is not None else old
        labels = (subject.metadata.labels or {}) if subject is not None else {}
        match kind.partition(":"):
            case "queue", *_:
                queue = True
            case "skip", *_:
                queue = False
            case "self", *_:
                queue = isinstance(subject, Pod) and subject.uid == pod.uid
            case "podLabel", _, key:
                queue = pod.labels.get(key) == "yes"
            case "sameLabel", _, key:
                queue = bool(pod.labels.get(key)) and labels.get(key) == pod.labels[key]
            case _:
                raise RuntimeError("the hint function of the recording fails")
        return Hint.QUEUE if queue else Hint.SKIP

    return BoundHook(name, "hint", hint)
