"""What must never happen, looked at with every change that the API server shows; without code of the scheduler."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
import trio
from attrs import define, field

from trio_sched.kube_client.connection import KubeClient
from trio_sched.objects.amounts.quantity import parse_nano

Object = dict[str, Any]
WATCH_SECONDS: Final = 14_400
_FENCED: Final = "trio-sched.dev/Fenced"


@define(eq=False)
class Checks:
    """Collects what was wrong."""

    nodes: Mapping[str, Object]
    is_deleted: Callable[[str], bool]
    """Whether users have deleted a pod."""
    gone: Callable[[str], None]
    """Called with every pod that is gone."""
    problems: list[str] = field(factory=list, init=False)
    pods: dict[str, Object] = field(factory=dict, init=False)
    """By name, as they are now."""
    claims: dict[str, Object] = field(factory=dict, init=False)
    bound_at: dict[str, float] = field(factory=dict, init=False)
    """By name: when each pod was seen to have a node."""
    evicted: set[str] = field(factory=set, init=False)
    """Names of pods that nobody but the schedulers has deleted."""
    fenced: set[str] = field(factory=set, init=False)
    """Names of pods that were given another version when a shard was taken over."""
    nominated: set[str] = field(factory=set, init=False)
    """Names of pods that were nominated to a node of another replica."""

    def pod_changed(self, kind: str, pod: Object) -> None:
        """A pod is now as it is here."""
        name, uid, node = pod["metadata"]["name"], pod["metadata"]["uid"], _node_of(pod)
        before = self.pods.pop(name, None)
        if any(one["type"] == _FENCED for one in pod["status"].get("conditions", ())):
            self.fenced.add(name)
        if pod["status"].get("nominatedNodeName"):
            self.nominated.add(name)
        if kind == "DELETED":
            self._pod_is_gone(pod)
            return
        former = "" if before is None or before["metadata"]["uid"] != uid else _node_of(before)
        if former and node != former:
            self._note(f"{name} was on {former} and is on {node or 'no node'}")
        elif node and not former:
            self.bound_at[name] = trio.current_time()
            for problem in self._objections(pod, self.nodes[node]):
                self._note(f"{name} on {node}: {problem}")
        self.pods[name] = pod

    def _pod_is_gone(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        if not self.is_deleted(name):
            self.evicted.add(name)
            if pod["spec"].get("priority", 0):
                self._note(f"{name} was evicted, and nothing is more important")
        self.gone(name)

    def claim_changed(self, kind: str, claim: Object) -> None:
        """A claim is now as it is here."""
        name = claim["metadata"]["name"]
        self.claims.pop(name, None)
        if kind == "DELETED":
            return
        mine = set(_devices_of(claim))
        for other in self.claims.values():
            for device in mine.intersection(_devices_of(other)):
                self._note(f"{name} has {device}, which {other['metadata']['name']} has, too")
        self.claims[name] = claim

    def at_the_end(self, events: list[Object]) -> None:
        """Nothing is under way any more; *events* are all that there are."""
        for pod in self.pods.values():
            for one in pod["spec"].get("resourceClaims", ()):
                pools = {pool for pool, _device in _devices_of(self.claims.get(one["resourceClaimName"], {}))}
                if _node_of(pod) and pools != {_node_of(pod)}:
                    self._note(f"{pod['metadata']['name']} is on {_node_of(pod)}, its devices on {pools or 'no node'}")
        said: defaultdict[str, set[str]] = defaultdict(set)
        for event in events:
            if event["reason"] == "Scheduled":
                said[event["regarding"]["uid"]].add(event["note"])
        for notes in said.values():
            if len(notes) > 1:
                self._note(f"said to be on more than one node: {'; '.join(sorted(notes))}")

    def pending(self) -> list[str]:
        """The pods that have no node."""
        return sorted(name for name, pod in self.pods.items() if not _node_of(pod))

    def _note(self, what: str) -> None:
        self.problems.append(f"{trio.current_time():.1f}: {what}")

    def _objections(self, pod: Object, node: Object) -> Iterator[str]:
        """Why *pod* must not be on *node*, given the pods that are bound."""
        labels, name = node["metadata"]["labels"], node["metadata"]["name"]
        others = [one for one in self.pods.values() if _node_of(one) and one is not pod]
        used: Counter[str] = Counter(_requests(pod))
        for one in others:
            if _node_of(one) == name:
                used.update(_requests(one))
        for resource, amount in node["status"]["allocatable"].items():
            if used[resource] > parse_nano(amount):
                yield f"{used[resource] / 10**9:g} of {amount} {resource}"
        wanted = pod["spec"].get("nodeSelector", {})
        if not wanted.items() <= labels.items():
            yield f"its selector is {wanted}"
        for one in others:
            there = self.nodes[_node_of(one)]["metadata"]["labels"]
            if _repels(pod, one, labels, there) or _repels(one, pod, there, labels):
                yield f"{one['metadata']['name']} is on {_node_of(one)}, and one of both must not be beside the other"
        for term in _terms(pod, "podAffinity"):
            key = term["topologyKey"]
            if not any(
                _selects(term, one) and self.nodes[_node_of(one)]["metadata"]["labels"][key] == labels[key]
                for one in others
            ):
                yield f"there is no pod with {term['labelSelector']['matchLabels']} in {labels[key]}"


async def follow(
    client: KubeClient,
    path: str,
    take: Callable[[str, Object], None],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Have *take* see all objects of a collection, and every change of them in order; started when it is open."""
    listed = msgspec.json.decode(await client.call(b"GET", path.encode()))
    version = listed["metadata"]["resourceVersion"]
    for one in listed["items"]:
        take("ADDED", one)
    task_status.started()
    while True:  # the API server ends watches now and then
        query = f"watch=1&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}"
        async with client.stream(f"{path}?{query}".encode()) as stream:
            rest = b""
            while piece := await stream.receive():
                *lines, rest = (rest + piece).split(b"\n")
                for change in map(msgspec.json.decode, lines):
                    if change["type"] == "ERROR":
                        raise AssertionError(f"changes of {path} were missed: {change['object']}")
                    version = change["object"]["metadata"]["resourceVersion"]
                    take(change["type"], change["object"])


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _requests(pod: Object) -> dict[str, int]:
    (container,) = pod["spec"]["containers"]
    found = {name: parse_nano(amount) for name, amount in container["resources"]["requests"].items()}
    return {**found, "pods": parse_nano("1")}


def _devices_of(claim: Object) -> list[tuple[str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [(one["pool"], one["device"]) for one in (allocation.get("devices") or {}).get("results", ())]


def _terms(pod: Object, kind: str) -> list[Object]:
    affinity = pod["spec"].get("affinity", {}).get(kind, {})
    found: list[Object] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", [])
    return found


def _selects(term: Object, pod: Object) -> bool:
    return bool(term["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items())


def _repels(one: Object, other: Object, here: Object, there: Object) -> bool:
    """Whether a pod must not be where another one is, given the labels of their nodes."""
    terms = _terms(one, "podAntiAffinity")
    return any(here[term["topologyKey"]] == there[term["topologyKey"]] and _selects(term, other) for term in terms)
