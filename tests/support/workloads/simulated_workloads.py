"""Workloads in a simulated cluster: short requests, what becomes of them, and a scheduler that takes nodes in turn."""

import itertools
from collections import Counter
from typing import Any

import msgspec
import trio
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer
from trio_sched.simulator.storage.object_store import Change

_BIND_SECONDS = 0.1
MERGE = "application/merge-patch+json"
_PATHS = {
    "pods": "/api/v1/namespaces/default/pods",
    "replicationcontrollers": "/api/v1/namespaces/default/replicationcontrollers",
    "cronjobs": "/apis/batch/v1/namespaces/default/cronjobs",
    "jobs": "/apis/batch/v1/namespaces/default/jobs",
    "persistentvolumeclaims": "/api/v1/namespaces/default/persistentvolumeclaims",
    "resourcequotas": "/api/v1/namespaces/default/resourcequotas",
    "limitranges": "/api/v1/namespaces/default/limitranges",
    "events": "/api/v1/namespaces/default/events",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "nodes": "/api/v1/nodes",
}


class Workloads(Api):
    """What users do with workloads, and what they see."""

    def path(self, plural: str, name: str = "") -> str:
        path = _PATHS.get(plural) or f"/apis/apps/v1/namespaces/default/{plural}"
        return f"{path}/{name}" if name else path

    async def make(self, plural: str, name: str = "app", expect: int = 201, **spec: Any) -> Json:
        metadata = {"name": name, **spec.pop("metadata", {})}
        return await self("POST", self.path(plural), {"metadata": metadata, "spec": spec}, expect=expect)

    async def get(self, plural: str, name: str = "app") -> Json:
        return await self("GET", self.path(plural, name))

    async def status(self, plural: str, name: str = "app") -> Json:
        status: Json = (await self.get(plural, name))["status"]
        return status

    async def patch(self, plural: str, name: str, body: Json) -> Json:
        return await self("PATCH", self.path(plural, name), body, content_type=MERGE)

    async def remove(self, plural: str, name: str, **options: Any) -> Json:
        return await self("DELETE", self.path(plural, name), options or None)

    def stored(self, plural: str) -> list[Json]:
        """All objects of a kind, by name."""
        return [stored.fields for stored in self.server.store.collection(plural).in_order()]

    def names(self, plural: str = "pods") -> list[str]:
        return [fields["metadata"]["name"] for fields in self.stored(plural)]

    def phases(self) -> Counter[str]:
        """How many pods are in each phase; those that are being deleted are terminating."""
        return Counter(
            "Terminating" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]
            for pod in self.stored("pods")
        )

    def images(self) -> Counter[str]:
        """How many pods there are of each image, without those that are being deleted."""
        return Counter(
            pod["spec"]["containers"][0]["image"]
            for pod in self.stored("pods")
            if "deletionTimestamp" not in pod["metadata"]
        )


def template(image: str = "app:1", app: str = "app", annotations: Json | None = None, **spec: Any) -> Json:
    """A pod template."""
    metadata: Json = {"labels": {"app": app}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


SELECTOR = {"matchLabels": {"app": "app"}}


def condition(status: Json, kind: str) -> tuple[str, str]:
    """Status and reason of a condition; empty if there is none."""
    found = [one for one in status.get("conditions", ()) if one["type"] == kind]
    return (found[0]["status"], found[0].get("reason", "")) if found else ("", "")


def turn_scheduler(api: "Cluster") -> None:
    """Bind every pod that may be bound to the nodes in turn; node affinity on names is respected."""
    counter = itertools.count()
    state = api.server.state

    def on_pod(change: Change) -> None:
        fields = change.current.fields
        if change.type == "DELETED" or fields["spec"].get("nodeName") or fields["spec"].get("schedulingGates"):
            return
        names = [
            stored.fields["metadata"]["name"]
            for stored in state.store.collection("nodes").in_order()
            if not stored.fields["spec"].get("unschedulable")
        ]
        affinity = (fields["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
        for term in required.get("nodeSelectorTerms", ()):
            names = [name for rule in term.get("matchFields", ()) for name in rule["values"]]
        if names:
            api.bind(change.current.key, names[next(counter) % len(names)])

    state.store.collection("pods").listen(on_pod)


class Cluster(Workloads):
    """Workloads whose pods are bound."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self._bound: list[tuple[str, str]] = []
        self._wake = trio.Event()

    def bind(self, pod: str, node: str) -> None:
        """Have `schedule` bind a pod."""
        self._bound.append((pod, node))
        self._wake.set()

    async def schedule(self) -> None:
        """Bind what waits, a little later; never returns."""
        while True:
            await self._wake.wait()  # asking every so often would cost most of the time of tests that wait for hours
            self._wake = trio.Event()
            await trio.sleep(_BIND_SECONDS)
            while self._bound:
                key, node = self._bound.pop(0)
                pod = self.server.store.get("pods", key)
                if pod is not None and not pod.fields["spec"].get("nodeName"):
                    fields = msgspec.json.decode(b"{" + pod.tail)
                    fields["spec"]["nodeName"] = node
                    self.server.store.replace("pods", pod, fields)
