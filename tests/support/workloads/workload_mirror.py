"""What a cluster contains, followed by watches; and how it is summed up, so that two clusters can be compared."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import msgspec
import trio
from attrs import define, field

Json = dict[str, Any]
Summary = dict[str, int]
"""A line about an object → how many objects it is true of."""

COLLECTIONS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "persistentvolumeclaims": "/api/v1/persistentvolumeclaims",
    "replicationcontrollers": "/api/v1/replicationcontrollers",
    "resourcequotas": "/api/v1/resourcequotas",
    "deployments": "/apis/apps/v1/deployments",
    "replicasets": "/apis/apps/v1/replicasets",
    "statefulsets": "/apis/apps/v1/statefulsets",
    "daemonsets": "/apis/apps/v1/daemonsets",
    "controllerrevisions": "/apis/apps/v1/controllerrevisions",
    "jobs": "/apis/batch/v1/jobs",
    "cronjobs": "/apis/batch/v1/cronjobs",
    "poddisruptionbudgets": "/apis/policy/v1/poddisruptionbudgets",
    "events": "/api/v1/events",
}
POOL = "pool"
_SUFFIX = re.compile("-[bcdfghjklmnpqrstvwxz2456789]{5}")
"""How names end that the API server makes up; it may have refused the object of that name."""
_SOURCES = (
    *(f"{kind}-controller" for kind in ("deployment", "replicaset", "replication", "statefulset", "daemonset")),
    *("job-controller", "cronjob-controller", "taint-eviction-controller", "node-controller", "controllermanager"),
)
_COMBINED = "(combined from similar events): "
_NOT_COMPARED = ("observedGeneration", "currentRevision", "updateRevision", "uncountedTerminatedPods", "collisionCount")


@define(eq=False)
class Mirror:
    """The objects of a cluster by kind, and when each namespace changed last, in trio's time."""

    client: httpx.AsyncClient
    objects: dict[str, dict[str, Json]] = field(factory=lambda: {kind: {} for kind in COLLECTIONS})
    changed: dict[str, float] = field(factory=dict)
    masks: dict[str, dict[str, str]] = field(factory=lambda: defaultdict(dict))
    """Namespace → made-up names that were ever in it → what is said instead."""
    listeners: list[Callable[[str, str, Json], None]] = field(factory=list)
    """Are called with the kind, ``ADDED`` and so on, and the object."""

    async def follow(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow all kinds; never returns."""
        async with trio.open_nursery() as nursery:
            for kind in COLLECTIONS:
                await nursery.start(self._follow_kind, kind)
            task_status.started()

    async def _follow_kind(self, kind: str, *, task_status: trio.TaskStatus[None]) -> None:
        await self._watch(kind, await self._list(kind), task_status)
        while True:
            with suppress(httpx.TransportError):
                await self._watch(kind, await self._list(kind))
            await trio.sleep(0.1)

    async def _list(self, kind: str) -> str:
        listed = (await self.client.get(COLLECTIONS[kind])).raise_for_status().json()
        found = {_key(one): one for one in listed["items"]}
        for gone in self.objects[kind].keys() - found.keys():
            self._note(kind, "DELETED", self.objects[kind][gone])
        for one in found.values():
            self._note(kind, "ADDED", one)
        version: str = listed["metadata"]["resourceVersion"]
        return version

    async def _watch(
        self, kind: str, version: str, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        query = {"watch": "1", "resourceVersion": version}
        async with self.client.stream("GET", COLLECTIONS[kind], params=query, timeout=None) as response:
            task_status.started()
            rest = b""
            async for chunk in response.aiter_raw():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = msgspec.json.decode(line)
                    self._note(kind, event["type"], event["object"])

    def _note(self, kind: str, change: str, one: Json) -> None:
        metadata = one["metadata"]
        namespace = metadata.get("namespace") or (metadata.get("labels") or {}).get(POOL) or ""
        key = _key(one)
        if change == "DELETED":
            self.objects[kind].pop(key, None)
        else:
            self.objects[kind][key] = one
        if kind != "events":
            self.changed[namespace] = trio.current_time()
            self.masks[namespace][metadata["name"]] = masked_name(kind, one)
        for listener in self.listeners:
            listener(kind, change, one)

    def of(self, kind: str, namespace: str) -> list[Json]:
        """The objects of a kind in a namespace, by name."""
        prefix = f"{namespace}/"
        found = self.objects[kind]
        return [found[key] for key in sorted(found) if key.startswith(prefix)]

    def nodes(self, pool: str) -> list[Json]:
        """The nodes of a pool."""
        return [
            one for one in self.objects["nodes"].values() if (one["metadata"].get("labels") or {}).get(POOL) == pool
        ]

    # --- summaries --------------------------------------------------------------------------------------------------

    def summary(self, namespace: str) -> Summary:
        """What there is in a namespace, without what differs from cluster to cluster."""
        lines: Counter[str] = Counter()
        revisions = self._revisions(namespace)
        for kind in COLLECTIONS:
            if kind in ("nodes", "events"):
                continue
            for one in self.of(kind, namespace):
                told = _pod_line(one, revisions) if kind == "pods" else _line(kind, one)
                lines[self.masked(namespace, f"{self._title(kind, one)}: {told}")] += 1
        for node in self.nodes(namespace):
            lines[f"Node {node['metadata']['name']}: {_node_line(node)}"] += 1
        return dict(sorted(lines.items()))

    def events(self, namespace: str) -> Summary:
        """What controllers have told in a namespace; how often, and how many were combined, depends on their pace."""
        told = {}
        for one in self.of("events", namespace):
            source = (one.get("source") or {}).get("component") or ""
            if source in _SOURCES:
                about, message = one["involvedObject"], one["message"].removeprefix(_COMBINED)
                line = f"event of {about['kind']} {about['name']}: {one['type']} {one['reason']} ({source}): {message}"
                told[self.masked(namespace, line)] = 1
        return told

    def masked(self, namespace: str, text: str) -> str:
        """*text* with ``#`` in place of the names that were made up."""
        masks = self.masks[namespace]

        def mask(found: re.Match[str]) -> str:
            word, stem = found[0], found[0][:-6]
            if word in masks:
                return masks[word]
            return f"{masks[stem]}-#" if stem in masks and _SUFFIX.fullmatch(word[-6:]) else word

        return re.sub(r"[a-z0-9][-a-z0-9.]*[a-z0-9]", mask, text)

    def _revisions(self, namespace: str) -> dict[str, str]:
        return {
            label: str(one.get("revision"))
            for one in self.of("controllerrevisions", namespace)
            for label in (one["metadata"]["name"], one["metadata"]["labels"].get("controller-revision-hash"))
            if label
        }

    def _title(self, kind: str, one: Json) -> str:
        metadata = one["metadata"]
        owner = next((r for r in metadata.get("ownerReferences") or () if r.get("controller")), None)
        if owner is None:
            return f"{kind} {metadata['name']}"
        by = f"{owner['kind']} {owner['name']}"
        if kind == "pods" and owner["kind"] == "ReplicaSet":
            found = self.objects["replicasets"].get(f"{metadata['namespace']}/{owner['name']}")
            if found is not None:
                by += f" {_revision(found)}"
        if kind == "replicasets":
            return f"{kind} of {by} {_revision(one)}"
        number = f" {metadata['name']}" if owner["kind"] == "StatefulSet" else ""
        index = (metadata.get("annotations") or {}).get("batch.kubernetes.io/job-completion-index", "")
        return f"{kind} of {by}{number}{f' #{index}' if index else ''}"


def _key(one: Json) -> str:
    return f"{one['metadata'].get('namespace', '')}/{one['metadata']['name']}"


def _revision(replica_set: Json) -> str:
    revision = (replica_set["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision")
    return f"revision {revision}" if revision else ""


def masked_name(kind: str, one: Json) -> str:
    """The name of an object, with ``#`` for what was made up."""
    metadata = one["metadata"]
    name: str = metadata["name"]
    labels = metadata.get("labels") or {}
    if kind == "controllerrevisions":
        return f"{name.rpartition('-')[0]}-#"
    stem = metadata.get("generateName") or ""
    named = "statefulset.kubernetes.io/pod-name" in labels
    masked = f"{stem}#" if stem and kind == "pods" and not named else name
    made_up = labels.get("pod-template-hash")
    masked = masked.replace(f"-{made_up}", "-#") if made_up else masked
    return re.sub(r"-\d{8}(?=$|-)", "-#", masked)


def _pod_line(pod: Json, revisions: dict[str, str]) -> str:
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    ready = conditions.get("Ready", {}).get("status") == "True"
    disrupted = conditions.get("DisruptionTarget", {}).get("reason", "")
    revision = revisions.get((metadata.get("labels") or {}).get("controller-revision-hash") or "", "")
    parts = [
        "terminating" if "deletionTimestamp" in metadata else "",
        status.get("phase", ""),
        "ready" if ready else "",
        "bound" if pod["spec"].get("nodeName") else "",
        disrupted,
        status.get("reason", ""),
        f"of revision {revision}" if revision else "",
        " ".join(sorted(metadata.get("finalizers") or ())),
    ]
    return " ".join(part for part in parts if part)


def _node_line(node: Json) -> str:
    spec = node.get("spec") or {}
    taints = sorted(f"{one['key']}:{one['effect']}" for one in spec.get("taints") or ())
    ready = [one["status"] for one in (node.get("status") or {}).get("conditions") or () if one["type"] == "Ready"]
    return f"ready {ready} {'unschedulable ' if spec.get('unschedulable') else ''}{taints}"


def _line(kind: str, one: Json) -> str:
    metadata, spec, status = one["metadata"], one.get("spec") or {}, one.get("status") or {}
    parts = ["terminating"] if "deletionTimestamp" in metadata else []
    if kind != "persistentvolumeclaims":  # the simulator protects no claims that pods use
        parts += sorted(metadata.get("finalizers") or ())
    if kind == "controllerrevisions":
        return " ".join([*parts, f"revision {one.get('revision')}"])
    if "replicas" in spec:
        parts.append(f"wants {spec['replicas']}")
    if "observedGeneration" in status:
        parts.append("seen" if status["observedGeneration"] == metadata.get("generation") else "not seen")
    for name, value in sorted(status.items()):
        if name == "conditions":
            parts += sorted(f"{c['type']}={c['status']} {c.get('reason', '')} '{c.get('message', '')}'" for c in value)
        elif name.endswith("Time"):
            parts.append(name)
        elif name == "active" and isinstance(value, list):
            parts.append(f"active {len(value)}")
        elif name not in _NOT_COMPARED:
            parts.append(f"{name}={dict(sorted(value.items())) if isinstance(value, dict) else value}")
    return ", ".join(parts)
