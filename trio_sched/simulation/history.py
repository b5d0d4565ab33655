"""What happens to the pods of a simulated cluster: when they are created, bound, preempted and end."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec
import trio
from attrs import define, field, frozen

from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import ResourceAmounts, pod_resources
from trio_sched.simulator.storage.object_store import Change, ObjectStore, StoredObject

_PREEMPTED: Final = re.compile(r"Preempted by pod (?P<uid>\S+) on node (?P<node>\S+)")
_decode_pod = msgspec.json.Decoder(Pod).decode


@define(eq=False)
class PodLife:
    """One pod; all times in seconds after the beginning."""

    stored: StoredObject
    """The newest version."""
    created: float
    bound: float | None = None
    ended: float | None = None
    """When it succeeded, failed or was deleted."""
    was_bound: bool = False
    """Whether it had its node at the beginning."""

    @property
    def seconds_to_schedule(self) -> float | None:
        """From its creation to its binding; None if that was not seen."""
        return None if self.bound is None or self.was_bound else self.bound - self.created


@frozen(kw_only=True)
class Preemption:
    """A pod that had to make room."""

    seconds: float
    victim: str
    """``namespace/name``."""
    preemptor: str
    """Its uid."""
    node: str


@frozen(kw_only=True)
class Timeline:
    """When things happened, in seconds after the beginning, in order."""

    arrivals: tuple[float, ...]
    """Creations of pods without a node."""
    placements: tuple[float, ...]
    preemptions: tuple[float, ...]
    requested: tuple[tuple[float, int, int], ...]
    """From when on how much milli-CPU and memory (bytes) is requested of nodes."""


@define(eq=False)
class History:
    """Follows the pods of *store*; to be begun when it has what exists from the beginning."""

    store: ObjectStore
    began: float = field(factory=trio.current_time)
    lives: dict[str, PodLife] = field(factory=dict, init=False)
    """By uid."""
    preemptions: list[Preemption] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        for stored in self.store.collection("pods").in_order():
            life = self._note(stored, gone=False)
            life.was_bound = life.bound is not None

    @contextmanager
    def followed(self) -> Generator[None, None, None]:
        """Follow what happens while in the block."""
        ends = [
            self.store.collection("pods").listen(self._on_pod),
            self.store.collection("events").listen(self._on_event),
        ]
        try:
            yield
        finally:
            for end in ends:
                end()

    def key_of(self, uid: str) -> str:
        """``namespace/name`` of a pod that exists or existed."""
        return self.lives[uid].stored.key if uid in self.lives else f"a pod that is not known ({uid})"

    def timeline(self, requests: Mapping[str, ResourceAmounts]) -> Timeline:
        """When things happened.

        Args:
            requests: uid → what pods request, of those that exist; those of others are computed.
        """
        changes: dict[float, tuple[int, int]] = {0.0: (0, 0)}
        for uid, life in self.lives.items():
            if life.bound is None:
                continue
            wanted = requests.get(uid) or pod_resources(_decode_pod(life.stored.encoded(b"{"))).requested
            cpu, memory = wanted.amount("cpu"), wanted.amount("memory")
            for seconds, sign in ((life.bound, 1), (life.ended, -1)):
                if seconds is not None:
                    before = changes.get(seconds, (0, 0))
                    changes[seconds] = before[0] + sign * cpu, before[1] + sign * memory
        requested: list[tuple[float, int, int]] = []
        cpu = memory = 0
        for seconds, (more_cpu, more_memory) in sorted(changes.items()):
            cpu, memory = cpu + more_cpu, memory + more_memory
            requested.append((seconds, cpu, memory))
        scheduled = [life for life in self.lives.values() if not life.was_bound]
        return Timeline(
            arrivals=tuple(sorted(life.created for life in scheduled)),
            placements=tuple(sorted(life.bound for life in scheduled if life.bound is not None)),
            preemptions=tuple(one.seconds for one in self.preemptions),
            requested=tuple(requested),
        )

    def _now(self) -> float:
        return trio.current_time() - self.began

    def _on_pod(self, change: Change) -> None:
        self._note(change.current, gone=change.type == "DELETED")

    def _note(self, stored: StoredObject, *, gone: bool) -> PodLife:
        fields = stored.fields
        uid: str = fields["metadata"]["uid"]
        life = self.lives.get(uid)
        if life is None:
            life = self.lives[uid] = PodLife(stored, self._now())
        life.stored = stored
        if life.bound is None and fields["spec"].get("nodeName"):
            life.bound = self._now()
        is_over = gone or (fields.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if life.ended is None and is_over:
            life.ended = self._now()
        return life

    def _on_event(self, change: Change) -> None:
        fields = change.current.fields
        if change.type != "ADDED" or fields.get("reason") != "Preempted":
            return
        told = _PREEMPTED.match(fields.get("message") or "")
        if told is not None:
            about = fields["involvedObject"]
            victim = f"{about['namespace']}/{about['name']}"
            self.preemptions.append(
                Preemption(seconds=self._now(), victim=victim, preemptor=told["uid"], node=told["node"])
            )
