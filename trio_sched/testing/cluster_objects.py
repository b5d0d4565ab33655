"""The objects of a virtual cluster: what a test changes and reads, through the API server or in its store."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar, overload

import msgspec
from attrs import define

from trio_sched.daemon.plugins.object_writes import kind_to_write, type_fields
from trio_sched.documents.json_values import Json, encode
from trio_sched.errors import TrioSchedError
from trio_sched.objects.event import CoreEvent
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.simulator import ApiServer
from trio_sched.simulator.conversion.other_versions import reshaped
from trio_sched.testing.manifests import KubeObject, ObjectChange, decode_like, manifest_of
from trio_sched.testing.plugin_harness import UnknownNode
from trio_sched.testing.real_time_limit import RealTimeLimit

_T = TypeVar("_T")
_C = TypeVar("_C")


class Refused(TrioSchedError):
    """The API server refused a request of the test."""

    def __init__(self, request: str, code: int, message: str) -> None:
        super().__init__(request, code, message)
        self.request, self.code, self.message = request, code, message

    def __str__(self) -> str:
        return f"{self.request}: {self.code}: {self.message}"


@define(eq=False, kw_only=True)
class ClusterObjects:
    """Makes, changes and reads objects."""

    api: ApiServer
    """The API server: ``stop``, ``resume``, ``restart``, ``compact``; and ``faults`` with ``fail_next``, ``drop_next``,
    ``set_latency`` and ``clear``."""
    _real_time_limit: RealTimeLimit
    _custom_resources: tuple[CustomResource[Any], ...] = ()

    @property
    def _known_resources(self) -> tuple[CustomResource[Any], ...]:
        """The custom resources whose classes are known."""
        return self._custom_resources

    # --- changing objects -------------------------------------------------------------------------------------------

    async def create(self, obj: _T, *, check_node: bool = True) -> _T:
        """Create *obj*; returns it as the API server stored it.

        The server replaces its UID. The priority of a pod from a builder is set through a priority class, which is
        created if there is none; a ReplicaSet and the like from a builder make no pods.

        Args:
            obj: the object.
            check_node: whether a pod from a builder must not be on a node that does not exist; the server allows it.

        Raises:
            Refused: the server refused it.
            UnknownNode: the node of the pod does not exist.
        """
        if check_node and isinstance(obj, Pod) and obj.node_name:
            nodes = [stored.key for stored in self.api.store.collection("nodes").in_order()]
            if obj.node_name not in nodes:
                raise UnknownNode(obj, nodes)
        manifest = manifest_of(obj, self._known_resources)
        if isinstance(obj, Pod) and "priority" in manifest["spec"]:
            manifest["spec"]["priorityClassName"] = await self._priority_class(manifest["spec"].pop("priority"))
        body = await self._request("POST", manifest, _without_uid(manifest))
        return decode_like(body, obj, self._known_resources)

    async def _priority_class(self, value: int) -> str:
        name = f"priority-{value}" if value >= 0 else f"priority-minus-{-value}"
        if self.api.store.get("priorityclasses.scheduling.k8s.io", name) is None:
            await self.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )
        return name

    async def patch(self, obj: _T, changes: Json, *, subresource: str = "") -> _T:
        """Merge *changes* into *obj*; returns it as the API server stored it.

        Pods and nodes from a builder by strategic merge patch, everything else by JSON merge patch.

        Raises:
            Refused: the server refused it.
        """
        manifest = manifest_of(obj, self._known_resources)
        kind_of_patch = "strategic-merge-patch" if isinstance(obj, Pod | Node) else "merge-patch"
        content_type = f"application/{kind_of_patch}+json"
        body = await self._request("PATCH", manifest, changes, subresource=subresource, content_type=content_type)
        return decode_like(body, obj, self._known_resources)

    async def delete(self, obj: KubeObject, *, grace_seconds: int | None = None) -> None:
        """Delete *obj*; a pod on a node goes when its grace period is over or its kubelet has stopped it.

        Raises:
            Refused: the server refused it; the object does not exist, for instance.
        """
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        await self._request("DELETE", manifest_of(obj, self._known_resources), options)

    async def replace(self, obj: _T) -> _T:
        """Replace the object of the same kind and name by *obj*, its status included; returns what was stored.

        Raises:
            Refused: the server refused it.
        """
        manifest = manifest_of(obj, self._known_resources)
        body = await self._request("PUT", manifest, _without_uid(manifest))
        if "status" in manifest:
            body = await self._request("PUT", manifest, _without_uid(manifest), subresource="status")
        return decode_like(body, obj, self._known_resources)

    async def apply(self, change: ObjectChange) -> None:
        """Make one change of a history; what does not exist any more is left alone.

        Raises:
            Refused: the server refused it.
        """
        try:
            if change.old is None and change.new is not None:
                await self.create(change.new)
            elif change.new is None and change.old is not None:
                await self.delete(change.old)
            elif isinstance(change.new, Pod) and isinstance(change.old, Pod):  # its node may be known by now
                labels = {**dict.fromkeys(change.old.labels), **change.new.labels}
                await self.patch(change.new, {"metadata": {"labels": labels}})
            elif change.new is not None:
                await self.replace(change.new)
        except Refused as refused:
            if change.old is None or refused.code != 404:
                raise

    # --- reading ----------------------------------------------------------------------------------------------------

    @overload
    def object(self, kind: CustomResource[_C], name: str, namespace: str = "") -> _C: ...
    @overload
    def object(self, kind: str, name: str, namespace: str = "") -> Any: ...
    def object(self, kind: Any, name: str, namespace: str = "") -> Any:
        """The object *name* of any kind: ``"Node"``, ``"PersistentVolumeClaim"``, or a `CustomResource`.

        Raises:
            LookupError: there is no such object, or no such kind.
        """
        found = kind_to_write(kind)
        collection = f"{found.plural}.{found.group}".rstrip(".")
        stored = self.api.store.get(collection, f"{namespace}/{name}".lstrip("/"))
        if stored is None:
            raise LookupError(f"there is no {kind} {namespace}/{name}".replace(" /", " "))
        if isinstance(kind, CustomResource):
            named = ",".join(f'"{key}":"{value}"' for key, value in type_fields(kind).items())
            return kind.decode(stored.encoded(f"{{{named},".encode()))
        return msgspec.json.decode(stored.encoded(b"{"), type=found.type)

    def pod(self, name: str, namespace: str = "default") -> Pod:
        """The pod *name*.

        Raises:
            LookupError: there is no such pod.
        """
        stored = self.api.store.get("pods", f"{namespace}/{name}")
        if stored is None:
            raise LookupError(f"there is no pod {namespace}/{name}")
        return msgspec.json.decode(stored.encoded(b"{"), type=Pod)

    def pods(self) -> list[Pod]:
        """Every pod, by namespace and name."""
        stored = self.api.store.collection("pods").in_order()
        return [msgspec.json.decode(one.encoded(b"{"), type=Pod) for one in stored]

    def placements(self) -> dict[str, str]:
        """``namespace/name`` of every pod → the name of its node, "" if it has none."""
        return {pod.key: pod.node_name for pod in self.pods()}

    def events(self, reason: str = "", *, about: str = "") -> list[CoreEvent]:
        """The events that were recorded, oldest first.

        Args:
            reason: only those with this reason, ``Scheduled`` or ``FailedScheduling``.
            about: only those about objects of this name.
        """
        stored = self.api.store.collection("events").objects.values()
        found = [msgspec.json.decode(one.encoded(b"{"), type=CoreEvent) for one in stored]
        return [
            event
            for event in found
            if event.reason == (reason or event.reason)
            and event.involved_object.name == (about or event.involved_object.name)
        ]

    # --- the API ----------------------------------------------------------------------------------------------------

    async def _request(
        self,
        method: str,
        manifest: Json,
        body: Json,
        *,
        subresource: str = "",
        content_type: str = "application/json",
    ) -> bytes:
        """Send a request about *manifest* in a version that is served; its answer is in the version of *manifest*."""
        self._real_time_limit.restart()
        api_version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
        types = self.api.state.types
        resource = types.of_kind(api_version, kind)
        served = None if resource is None else types.served(resource)
        if resource is None or served is None:
            raise Refused(f"{kind} {metadata['name']}", 404, f"no resource of kind {kind} in {api_version} is served")
        root = f"/apis/{served.api_version}" if served.group else f"/api/{served.version}"
        inside = f"/namespaces/{metadata.get('namespace') or 'default'}" if served.namespaced else ""
        name = "" if method == "POST" else f"/{metadata['name']}"
        path = f"{root}{inside}/{served.plural}{name}" + (f"/{subresource}" if subresource else "")
        sent = encode(reshaped(resource, served, body))
        response = await self.api.handle(method, path, "", {"content-type": content_type}, sent)
        assert isinstance(response.body, bytes)  # only watches are streams
        if response.status >= 300:
            message = msgspec.json.decode(response.body)["message"]
            if missing := _no_namespace(message):
                message += f"; make it first: await cluster.create(namespace({missing[1]!r}))"
            raise Refused(f"{method} {path}", response.status, message)
        if served is resource:
            return response.body
        return encode(reshaped(served, resource, msgspec.json.decode(response.body)))


_no_namespace: Final = re.compile(r'namespaces "(.+)" not found').fullmatch


def _without_uid(manifest: Json) -> Json:
    """The server gives UIDs."""
    return {**manifest, "metadata": {name: part for name, part in manifest["metadata"].items() if name != "uid"}}
