"""A running cluster, listed with the rights of whoever asks; nothing is ever written to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
import trio
from attrs import define, field, frozen

from trio_sched.documents.deep_json import decode_deep
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import Expired, Forbidden, NotFound, Unauthorized
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.kube_client.versions.api_versions import DEVICES, SCHEDULING, VERSIONED, ApiVersion
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_MINOR

_PAGE: Final = 500
"""Objects in one response, as in kubectl's."""
_AT_ONCE: Final = 4
"""Kinds that are listed at the same time."""


@frozen(kw_only=True)
class _Resource:
    plural: str
    kind: str = ""
    """Empty: as the responses to lists say."""
    group: str = ""
    version: str = "v1"
    """The one whose shape the simulator is given."""
    required: bool = False
    is_custom: bool = False
    only_minor: int = 0
    """The minor version of Kubernetes that alone has it in this version; 0: it is listed in any."""

    @property
    def name(self) -> str:
        """What it is called in texts."""
        return f"{self.plural}.{self.group}" if self.is_custom else self.plural

    @property
    def versions(self) -> tuple[ApiVersion, ...]:
        """Those that are tried, the best first."""
        row = None if self.is_custom or self.only_minor else VERSIONED.get((self.group, self.plural))
        return (ApiVersion(self.version),) if row is None else row.versions

    def path(self, version: str) -> str:
        """Where all of them are listed in *version*."""
        return f"/apis/{self.group}/{version}/{self.plural}" if self.group else f"/api/{version}/{self.plural}"

    @property
    def api_version(self) -> str:
        """``apiVersion`` of the objects that the simulator is given."""
        return f"{self.group}/{self.version}" if self.group else self.version


_STORAGE: Final = "storage.k8s.io"
_RESOURCES: Final = (
    _Resource(plural="pods", kind="Pod", required=True),
    _Resource(plural="nodes", kind="Node", required=True),
    _Resource(plural="namespaces", kind="Namespace"),
    _Resource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim"),
    _Resource(plural="persistentvolumes", kind="PersistentVolume"),
    _Resource(plural="services", kind="Service"),
    _Resource(plural="replicationcontrollers", kind="ReplicationController"),
    _Resource(plural="resourcequotas", kind="ResourceQuota"),
    _Resource(plural="limitranges", kind="LimitRange"),
    _Resource(plural="deployments", kind="Deployment", group="apps"),
    _Resource(plural="replicasets", kind="ReplicaSet", group="apps"),
    _Resource(plural="statefulsets", kind="StatefulSet", group="apps"),
    _Resource(plural="daemonsets", kind="DaemonSet", group="apps"),
    _Resource(plural="controllerrevisions", kind="ControllerRevision", group="apps"),
    _Resource(plural="jobs", kind="Job", group="batch"),
    _Resource(plural="cronjobs", kind="CronJob", group="batch"),
    _Resource(plural="poddisruptionbudgets", kind="PodDisruptionBudget", group="policy"),
    _Resource(plural="priorityclasses", kind="PriorityClass", group=SCHEDULING),
    _Resource(plural="runtimeclasses", kind="RuntimeClass", group="node.k8s.io"),
    _Resource(plural="storageclasses", kind="StorageClass", group=_STORAGE),
    _Resource(plural="csinodes", kind="CSINode", group=_STORAGE),
    _Resource(plural="csidrivers", kind="CSIDriver", group=_STORAGE),
    _Resource(plural="csistoragecapacities", kind="CSIStorageCapacity", group=_STORAGE),
    _Resource(plural="volumeattachments", kind="VolumeAttachment", group=_STORAGE),
    _Resource(plural="resourceclaims", kind="ResourceClaim", group=DEVICES),
    _Resource(plural="resourceclaimtemplates", kind="ResourceClaimTemplate", group=DEVICES),
    _Resource(plural="resourceslices", kind="ResourceSlice", group=DEVICES),
    _Resource(plural="deviceclasses", kind="DeviceClass", group=DEVICES),
    _Resource(plural="devicetaintrules", kind="DeviceTaintRule", group=DEVICES, version="v1beta2"),
    _Resource(plural="podgroups", kind="PodGroup", group=SCHEDULING, version="v1alpha2"),
    _Resource(plural="compositepodgroups", kind="CompositePodGroup", group=SCHEDULING, version="v1alpha3"),
    _Resource(plural="workloads", kind="Workload", group=SCHEDULING, version="v1alpha2"),
    _Resource(plural="workloads", kind="Workload", group=SCHEDULING, version="v1alpha1", only_minor=35),
)
"""What the scheduler, the plugins of Kubernetes and the simulated controllers look at."""
_LISTED_ANYWAY: Final = frozenset((one.group, one.plural) for one in _RESOURCES)
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class NotListed(TrioSchedError):
    """The cluster does not show its pods or nodes to whoever asks."""


class _Metadata(msgspec.Struct, rename="camel"):
    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Items(msgspec.Struct):
    kind: str = ""
    items: list[dict[str, Any]] | None = None


_Lists = list[tuple[_Resource, ApiVersion, bytes]]
"""Responses, each with what it lists and in which version."""


@define(eq=False)
class LiveCluster:
    """What a running cluster has.

    Attributes:
        settings: how it is reached.
        lacking: a line for each kind that may not be listed, known after the first `manifests`.
    """

    settings: ConnectionSettings
    lacking: list[str] = field(factory=list, init=False)
    _lists: _Lists | None = field(default=None, init=False)
    _definitions: list[bytes] = field(factory=list, init=False)
    """The CustomResourceDefinitions of the custom resources that plugins watch, as JSON."""

    def manifests(
        self, begin: Callable[[str], None], watched: Iterable[Kind[Any]] = (), *, minor: int = DEFAULT_MINOR
    ) -> list[Manifest]:
        """Every object, new ones at each call; the cluster is listed at the first.

        Args:
            begin: is told what is done next.
            minor: the minor version of Kubernetes that is given the objects.
            watched: the kinds that plugins watch; those that are listed anyway may be among them.

        Raises:
            NotListed: the pods or the nodes may not be listed.
            KubeClientError: the cluster cannot be reached, or refuses.
        """
        if self._lists is None:
            custom = {
                _Resource(plural=kind.plural, group=kind.group, version=kind.version, is_custom=True)
                for kind in watched
                if (kind.group, kind.plural) not in _LISTED_ANYWAY
            }
            in_order = sorted(custom, key=lambda one: (one.name, one.version))
            known = [one for one in _RESOURCES if one.only_minor in (0, minor)]
            self._lists = trio.run(self._list, begin, (*known, *in_order))
        definitions = (Manifest(msgspec.json.decode(one)) for one in self._definitions)
        return [*definitions, *(Manifest(fields) for one in self._lists for fields in _objects(*one, self.lacking))]

    async def _list(self, begin: Callable[[str], None], resources: tuple[_Resource, ...]) -> _Lists:
        lists: dict[_Resource, _Lists] = {}
        limit = trio.CapacityLimiter(_AT_ONCE)

        async def list_one(client: KubeClient, resource: _Resource) -> None:
            async with limit:
                lists[resource] = await self._lists_of(client, resource, begin)

        async with connect(self.settings, component="simulate", qps=-1) as client:
            async with trio.open_nursery() as nursery:
                for resource in resources:
                    nursery.start_soon(list_one, client, resource)
            for name in {one.name: None for one in resources if one.is_custom}:
                await self._read_definition(client, name)
        return [one for resource in resources for one in lists[resource]]

    async def _read_definition(self, client: KubeClient, name: str) -> None:
        """What a custom resource is defined as, without which the simulated cluster does not serve it."""
        try:
            self._definitions.append(await client.call(b"GET", f"{_DEFINITIONS}/{name}".encode()))
        except NotFound:
            return
        except (Forbidden, Unauthorized) as refused:
            self.lacking.append(
                f"the definition of {name} cannot be read, so none of its objects are known here: {refused}"
            )

    async def _lists_of(self, client: KubeClient, resource: _Resource, begin: Callable[[str], None]) -> _Lists:
        """The responses to a list of *resource* in the best version that is served; none if there is no such."""
        for version in resource.versions:
            try:
                return await _listed(client, resource, version, begin)
            except NotFound:
                continue
            except (Forbidden, Unauthorized) as refused:
                if resource.required:
                    text = f"the cluster's {resource.name} cannot be listed: {refused}"
                    raise NotListed(f"{text}; ask for the right to list them in all namespaces") from refused
                self.lacking.append(f"{resource.name} cannot be listed, so none are known here: {refused}")
                return []
        if resource.required:
            raise NotListed(f"{self.settings.server} serves no {resource.plural}; is it the API server of a cluster?")
        return []


async def _listed(client: KubeClient, resource: _Resource, version: ApiVersion, begin: Callable[[str], None]) -> _Lists:
    """The responses to one list.

    Raises:
        ApiError: the server refused.
        ConnectionFailed: there is no complete response.
    """
    lists: _Lists = []
    path, token = resource.path(version.name), ""
    begin(f"listing {resource.name}")
    while True:
        query = urlencode({"limit": _PAGE, **({"continue": token} if token else {})})
        try:
            body = await client.call(b"GET", f"{path}?{query}".encode(), headers=client.list_headers)
        except Expired:
            if not token:
                raise
            lists, token = [], ""  # the list took longer than the server keeps its versions: the next is of one piece
            body = await client.call(b"GET", path.encode(), headers=client.list_headers)
        metadata = _decoded(body, path, _LIST).metadata
        lists.append((resource, version, body))
        token = metadata.continue_ or ""
        if not token:
            return lists
        if metadata.remaining_item_count:
            begin(f"listing {resource.name}: {metadata.remaining_item_count:,} left")


def _objects(resource: _Resource, version: ApiVersion, body: bytes, lacking: list[str]) -> Iterator[dict[str, Any]]:
    listed = _decoded(body, resource.name, _ITEMS)
    kind = resource.kind or listed.kind.removesuffix("List")
    for fields in listed.items or ():
        try:
            shaped = fields if version.read is None else version.read(fields)
        except msgspec.ValidationError as problem:
            text = f"one of the {resource.name} is left out: {problem}"
            if text not in lacking:
                lacking.append(text)
            continue
        # The items of a list do not say what they are.
        named = {"apiVersion": resource.api_version, "kind": kind}
        yield {**named, **shaped, "apiVersion": resource.api_version}


_S = TypeVar("_S")
_LIST: Final = msgspec.json.Decoder(_List)
_ITEMS: Final = msgspec.json.Decoder(_Items)


def _decoded(body: bytes, what: str, decoder: msgspec.json.Decoder[_S]) -> _S:
    """The list in *body*.

    Raises:
        NotListed: it is none.
    """
    try:
        return decode_deep(decoder.decode, body)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise NotListed(f"{what}: the response is no list of objects: {problem}") from problem
