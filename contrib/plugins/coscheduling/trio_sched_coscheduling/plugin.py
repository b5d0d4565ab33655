"""The plugin: the pods of a gang are bound together or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

import trio
import trio.lowlevel
from attrs import field, frozen, validators

from trio_sched.plugin_api import (
    Action,
    Code,
    CycleState,
    Diagnosis,
    Duration,
    EventRegistration,
    Handle,
    Hint,
    Pod,
    PostFilterResult,
    QueuedPod,
    Resource,
    Status,
    Wait,
    hookimpl,
    on,
    parse_time,
    unresolvable,
    unschedulable,
)
from trio_sched_coscheduling.gang import BadLabel, Gang, Gangs
from trio_sched_coscheduling.preemption import places

NAME: Final = "Coscheduling"
_TICK_SECONDS: Final = 1.0
_TICKS_BETWEEN_SWEEPS: Final = 60
_BETWEEN_ROUNDS_SECONDS: Final = 0.05
"""A gang that does not fit gives its places back within this time, so that the next one finds them free."""
_CHUNK: Final = 200
"""How many gangs are looked at before other tasks run."""
_TELL_AFTER_SECONDS: Final = 10.0
"""How long a gang may have too few pods before an event says so: controllers need a moment to create them."""
_RETRY_SECONDS: Final = 30.0
_BUCKETS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


@frozen(kw_only=True)
class CoschedulingArgs:
    """What ``pluginConfig`` says."""

    group_label: str = field(default="trio-sched.dev/pod-group", validator=validators.min_len(1))
    """The label with the name of a pod's gang."""
    minimum_label: str = field(default="trio-sched.dev/min-available", validator=validators.min_len(1))
    """The label that says how many pods of the gang must have a node before one of them is bound."""
    schedule_timeout: Duration = field(default=60.0, validator=[validators.ge(1.0), validators.le(900.0)])
    """How long pods with a place wait for the others of their gang."""
    backoff: Duration = field(default=2.0, validator=validators.ge(0.1))
    """How long the whole gang pauses after it did not fit; doubled each time."""
    max_backoff: Duration = field(default=60.0, validator=validators.ge(0.1))
    """The longest such pause."""


class Coscheduling:
    """Makes the pods of a gang wait on permit until enough of them have a node."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[CoschedulingArgs]] = CoschedulingArgs
    run_once_per_process: ClassVar[bool] = True

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        self._args, self._handle = args, handle
        self._gangs = handle.shared(lambda: Gangs(args.group_label, args.minimum_label))
        self._gangs.profiles.add(handle.profile_name)
        metrics = handle.metrics
        self._completed = metrics.counter("gangs_completed_total", "Gangs of which enough pods had a node to be bound.")
        self._failed = metrics.counter(
            "gangs_failed_total", "Rounds in which all waiting pods of a gang were rejected.", ["reason"]
        )
        self._seconds = metrics.histogram(
            "gang_seconds", "From the creation of a gang to its completion.", buckets=_BUCKETS
        )
        self._states = metrics.gauge("gangs", "Gangs with pods that have no node, by what they wait for.", ["state"])

    # --- the queue ----------------------------------------------------------------------------------------------------

    @hookimpl
    def queue_sort(self, queued: QueuedPod) -> tuple[int, float, str, float]:
        """By priority, then by age; all pods of a gang are as old as the gang, so that gangs do not interleave."""
        pod = queued.pod
        gang = self._gangs.find(pod)
        if gang is None:
            return -pod.priority, queued.timestamp, "", queued.timestamp
        return -pod.priority, gang.created, gang.key, queued.timestamp

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate pods of gangs that have too few pods, or that pause after they did not fit."""
        gang = self._gangs.join(pod, self._created(pod))
        if gang is None:
            return None
        try:
            own = self._gangs.minimum_of(pod)
        except BadLabel as problem:
            return unresolvable(str(problem))
        missing = self._missing(gang, pod, own)
        if missing:
            if gang.incomplete_since is None:
                gang.incomplete_since = self._handle.now()
            # No event tells that the pod is gone which asked for more pods than the others do.
            self._handle.retry_after(pod, _RETRY_SECONDS)
            return unresolvable(missing)
        if gang.backoff_until is not None:
            return unresolvable(f"gang {gang.key} did not fit and is tried again later, all pods at once")
        return None

    def _created(self, pod: Pod) -> float:
        """When it was created, by the scheduler's clock."""
        now = self._handle.now()
        created = parse_time(pod.metadata.creation_timestamp or "")
        return now if created is None else now - max(0.0, self._handle.wall_seconds() - created)

    def _missing(self, gang: Gang, pod: Pod, own: int) -> str:
        """Why the gang cannot become complete, whatever room there is; "" if it can. *pod* is one of it."""
        placed = self._placed(gang)
        if len(gang.names) + placed >= own:  # names of pods that are gone may be among them
            self._gangs.look(gang, self._handle, pod)
            needed = max(gang.minimum, own)
            present = len({*gang.unplaced, pod.uid} - gang.assumed) + placed
            if present >= needed:
                return ""
            own = needed
        return f"waiting until gang {gang.key} has the {own} pods that it needs"

    def _placed(self, gang: Gang) -> int:
        return int(self._handle.nodes.pod_counts(gang.selector).sum())

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A pod of the gang appears, on a node or without one, becomes ready to be scheduled, or leaves."""
        came = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        return [
            on(Resource.POD, came, self._pod_came),
            on(Resource.POD, Action.DELETE, self._pod_left),
        ]

    def _pod_came(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        if self._gangs.can_be_placed(new):
            self._gangs.join(new, self._created(new))
        return self._hint(pod, new)

    def _pod_left(self, pod: Pod, old: Pod, new: None) -> Hint:
        """The pod that asked for more than the others may be gone."""
        return self._hint(pod, old)

    def _hint(self, pod: Pod, other: Pod) -> Hint:
        gang = self._gangs.find(pod)
        if gang is None:  # its labels have changed
            return Hint.QUEUE
        if other.namespace != pod.namespace or gang.backoff_until is not None:
            return Hint.SKIP
        if self._gangs.name_of(other) != gang.name and other.uid != pod.uid:
            return Hint.SKIP
        try:
            return Hint.SKIP if self._missing(gang, pod, self._gangs.minimum_of(pod)) else Hint.QUEUE
        except BadLabel:
            return Hint.SKIP

    # --- a round ------------------------------------------------------------------------------------------------------

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Note that the pod has a place."""
        gang = self._gangs.find(pod)
        if gang is not None and not state.is_trial:
            gang.assumed.add(pod.uid)
            gang.failed.discard(pod.uid)
        return None

    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Status | Wait | None:
        """Let all waiting pods of the gang go once enough have a place."""
        gang = self._gangs.find(pod)
        if gang is None or state.is_trial:
            return None
        try:
            needed = max(gang.minimum, self._gangs.minimum_of(pod))
        except BadLabel as problem:
            return unresolvable(str(problem))
        placed = self._placed(gang)
        if placed >= needed:
            self._complete(gang, placed)
            return None
        if gang.backoff_until is not None:
            return unschedulable(f"gang {gang.key} did not fit and is tried again later, all pods at once")
        if not gang.waiting:
            gang.round_began = self._handle.now()
            self._gangs.look(gang, self._handle)
            self._release(gang)
        gang.waiting.add(pod.uid)
        return Wait(self._args.schedule_timeout, f"waiting until {needed} pods of gang {gang.key} have a node")

    def _complete(self, gang: Gang, placed: int) -> None:
        waiting = self._handle.waiting_pods()
        allowed, gang.waiting = gang.waiting, set()
        gang.failures, gang.backoff_until = 0, None
        gang.failed.clear()
        for uid in allowed:
            if uid in waiting:
                waiting[uid].allow(NAME)
        if allowed or placed == 1:
            seconds = self._handle.now() - gang.created
            self._completed.inc()
            self._seconds.observe(max(0.0, seconds))
            self._handle.log.info("gang %s is complete: %d pods have a node, after %.1f s", gang.key, placed, seconds)

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """End the round if a pod that waited for the others has lost its place."""
        gang = self._gangs.find(pod)
        if gang is None or state.is_trial:
            return
        gang.assumed.discard(pod.uid)
        if pod.uid not in gang.waiting:
            return
        gang.waiting.discard(pod.uid)
        self._gangs.look(gang, self._handle)
        waited = self._handle.now() - gang.round_began
        if waited >= self._args.schedule_timeout:
            self._end_round(gang, "timeout", f"did not find room for {gang.minimum} pods within {waited:.0f} s")
        elif pod.uid in gang.unplaced:
            self._end_round(gang, "rejected", f"lost the place of pod {pod.name}")
        elif self._placed(gang) - 1 + gang.startable() < gang.minimum:  # it still counts as placed
            self._end_round(gang, "deleted", f"has too few pods since pod {pod.name} is gone")

    @hookimpl
    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult | None:
        """End the round if the gang cannot become complete; allow preemption only if it could."""
        gang = self._gangs.find(pod)
        if gang is None:
            return None
        self._gangs.look(gang, self._handle)
        placed = self._placed(gang)
        if placed >= gang.minimum:
            return None
        gang.failed.add(pod.uid)
        if gang.backoff_until is not None:
            return _refused(f"gang {gang.key} is tried again later, all pods at once")
        if placed + gang.startable() >= gang.minimum:
            return _refused(f"gang {gang.key} may do without this pod")
        if self._can_preempt(pod, diagnosis, state, gang.minimum - placed):
            gang.failed.discard(pod.uid)
            return None
        self._end_round(gang, "no_room", f"has room for {placed} of the {gang.minimum} pods that it needs")
        return _refused(f"gang {gang.key} has room for {placed} of the {gang.minimum} pods that it needs")

    def _can_preempt(self, pod: Pod, diagnosis: Diagnosis, state: CycleState, missing: int) -> bool:
        if pod.spec.preemption_policy == "Never":
            return False
        if self._handle.nominated_node(pod) or self._handle.is_preempting_for(pod):
            return True  # the room is being made
        nodes, statuses = self._handle.nodes, diagnosis.statuses.by_node()
        absent = diagnosis.statuses.absent
        names = [name for name in nodes.names if statuses.get(name, absent).code == Code.UNSCHEDULABLE]
        if not names:
            return False
        found = self._handle.dry_run_preemption(pod, state, names, missing)
        return places(pod, nodes, found.candidates, missing) >= missing

    def _end_round(self, gang: Gang, reason: str, what: str) -> None:
        """Reject all waiting pods at once, and let the gang pause."""
        rejected, gang.waiting = gang.waiting, set()
        pause = min(self._args.backoff * 2.0 ** min(gang.failures, 30), self._args.max_backoff)
        pause *= self._handle.rng.uniform(0.75, 1.0)  # two gangs that hinder each other shall not meet every time
        gang.failures += 1
        gang.backoff_until = self._handle.now() + pause
        self._failed.inc(reason=reason)
        text = f"gang {gang.key} {what}; all its pods are tried again in {pause:.1f} s"
        self._handle.log.info("%s", text)
        waiting = self._handle.waiting_pods()
        for uid in rejected:
            if uid in waiting:
                self._handle.record_event(waiting[uid].pod, "Warning", "GangDoesNotFit", "Scheduling", text)
                waiting[uid].reject(NAME, text)

    # --- as time passes -----------------------------------------------------------------------------------------------

    @hookimpl
    async def run(self) -> None:
        """End pauses, and find out which pods are gone."""
        tick = 0
        while True:
            await trio.sleep(_TICK_SECONDS)
            tick += 1
            states = {"waiting": 0, "backoff": 0, "incomplete": 0, "queued": 0}
            for number, gang in enumerate(list(self._gangs.by_key.values())):
                if number % _CHUNK == _CHUNK - 1:
                    await trio.lowlevel.checkpoint()
                if gang.backoff_until is not None:
                    if self._handle.now() >= gang.backoff_until:
                        self._begin_round(gang)
                        await trio.sleep(_BETWEEN_ROUNDS_SECONDS)
                else:
                    self._pass_time(gang, sweeps=tick % _TICKS_BETWEEN_SWEEPS == 0)
                if gang.names:
                    states[_state_of(gang)] += 1
            if tick % _TICKS_BETWEEN_SWEEPS == 0:
                self._gangs.forget_ended()
            for state, number in states.items():
                self._states.set(number, state=state)

    def _pass_time(self, gang: Gang, *, sweeps: bool) -> None:
        if gang.waiting:
            self._gangs.look(gang, self._handle)
            placed = self._placed(gang)
            if placed >= gang.minimum:
                self._complete(gang, placed)  # another scheduler has placed some, or less is needed by now
            elif placed + gang.startable() < gang.minimum:
                self._end_round(gang, "deleted", "has too few pods since some are gone")
        elif gang.incomplete_since is not None:
            self._look_whether_complete(gang, self._handle.now() - gang.incomplete_since)
        elif sweeps:
            self._gangs.look(gang, self._handle)

    def _begin_round(self, gang: Gang) -> None:
        gang.backoff_until = None
        gang.failed.clear()
        self._gangs.look(gang, self._handle)
        self._release(gang)

    def _release(self, gang: Gang) -> None:
        """Have all its pods tried that have no reservation."""
        gang.incomplete_since, gang.told = None, ""
        self._handle.activate([pod for uid, pod in gang.unplaced.items() if uid not in gang.assumed])

    def _look_whether_complete(self, gang: Gang, seconds: float) -> None:
        """Release pods that were gated because others did not exist: there are no events about pods without a node."""
        self._gangs.look(gang, self._handle)
        present = len(gang.unplaced.keys() - gang.assumed) + self._placed(gang)
        if present >= gang.minimum:
            self._release(gang)
            return
        text = f"gang {gang.key} has {present} of the {gang.minimum} pods that it needs"
        if seconds >= _TELL_AFTER_SECONDS and text != gang.told:
            gang.told = text
            for pod in gang.unplaced.values():
                self._handle.record_event(pod, "Warning", "GangIncomplete", "Scheduling", text)


def _refused(text: str) -> PostFilterResult:
    return PostFilterResult(unresolvable(f"coscheduling: {text}"))


def _state_of(gang: Gang) -> str:
    if gang.backoff_until is not None:
        return "backoff"
    if gang.waiting:
        return "waiting"
    return "queued" if gang.incomplete_since is None else "incomplete"
