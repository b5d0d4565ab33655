"""Which kinds of objects the server knows, under which paths, and how each behaves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_MINOR, NEWEST_MINOR
from trio_sched.simulator.validation.apiextensions.custom_schemas import Schema, compile_schema
from trio_sched.simulator.validation.meta.shapes import message_of_kind

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@frozen
class ScalePaths:
    """Where the ``scale`` subresource of a custom resource reads and writes, as the steps from field to field."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    actual: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ()


@frozen(kw_only=True, eq=False)
class ResourceType:
    """One resource in one API version.

    Attributes:
        storage: names the collection, if it is not the resource's own; versions of one resource share it.
        subresources: names such as ``status`` and ``scale``.
        counts_generations: ``metadata.generation`` is kept, rising when the spec changes.
        blind_updates: a PUT without ``resourceVersion`` is accepted.
        keeps_status_on_create: a creator may set ``status`` (kubelets create their node so).
        computed: objects are made of others when they are asked for; nobody writes them.
        schema: what the fields of a custom resource may be, if its definition says that.
        printed_columns: for custom ones, what their tables show, as their definition has it.
        scale_paths: for custom ones, where the wanted and the actual number of replicas and the selector stand.
        since: the first minor version of Kubernetes that serves it.
        until: the last one.
        message: the message that its objects are, see `validation.shapes`, or another that is alike.
        collection: the collection of the store that holds these objects.
        has_status: status is written through a subresource of its own.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    storage: str = ""
    counts_generations: bool = False
    blind_updates: bool = True
    keeps_status_on_create: bool = False
    custom: bool = False
    computed: bool = False
    schema: Schema | None = field(default=None, repr=False)
    scale_paths: ScalePaths | None = None
    printed_columns: tuple[dict[str, Any], ...] = ()
    since: int = 0
    until: int = NEWEST_MINOR
    api_version: str = field(init=False)
    message: str = field(init=False)
    qualified: str = field(init=False)
    collection: str = field(init=False)
    has_status: bool = field(init=False)
    prefix: bytes = field(init=False)

    @api_version.default
    def _api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @message.default
    def _message(self) -> str:
        message = message_of_kind(self.api_version, self.kind)
        return _ALIKE.get(message, message)

    @qualified.default
    def _qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @collection.default
    def _collection(self) -> str:
        return self.storage or self.qualified

    @has_status.default
    def _has_status(self) -> bool:
        return "status" in self.subresources

    @prefix.default
    def _prefix(self) -> bytes:
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @property
    def singular(self) -> str:
        """The name for one of them, as kubectl takes it."""
        return self.kind.lower()


_ALIKE: Final = {
    "resource.v1.DeviceTaintRule": "resource.v1beta2.DeviceTaintRule",
    "resource.v1alpha3.DeviceTaintRule": "resource.v1beta2.DeviceTaintRule",
    "storage.v1beta1.VolumeAttributesClass": "storage.v1.VolumeAttributesClass",
    # These objects are checked when they have the shape in which they are stored.
    "resource.v1alpha3.DeviceClass": "resource.v1.DeviceClass",
    "resource.v1alpha3.ResourceClaim": "resource.v1.ResourceClaim",
    "resource.v1alpha3.ResourceClaimTemplate": "resource.v1.ResourceClaimTemplate",
    "resource.v1alpha3.ResourceSlice": "resource.v1.ResourceSlice",
    "resource.v1beta1.DeviceClass": "resource.v1.DeviceClass",
    "resource.v1beta1.ResourceClaim": "resource.v1.ResourceClaim",
    "resource.v1beta1.ResourceClaimTemplate": "resource.v1.ResourceClaimTemplate",
    "resource.v1beta1.ResourceSlice": "resource.v1.ResourceSlice",
    "scheduling.v1alpha3.PodGroup": "scheduling.v1alpha2.PodGroup",
    "scheduling.v1alpha3.Workload": "scheduling.v1alpha2.Workload",
    "scheduling.v1beta1.PodGroup": "scheduling.v1alpha2.PodGroup",
    "scheduling.v1beta1.Workload": "scheduling.v1alpha2.Workload",
}

# A line per group ("-": the core group) with its versions, preferred first, each with the minor versions of Kubernetes
# that serve it, if not all do: @34 (since), @36-36 (since and until). Below it one per resource: plural, kind,
# n(amespaced) or c(luster-wide), short names, subresources (see `subresources`), flags.
# CONTAINERS: what would need a container.
# Flags: g = counts generations, r = PUT needs a resourceVersion, a = in kubectl's category "all",
# k = status may be set at creation, c = computed.
_TABLE = """
- v1
  bindings                        Binding                        n -        -                       -
  configmaps                      ConfigMap                      n cm       -                       -
  endpoints                       Endpoints                      n ep       -                       -
  events                          Event                          n ev       -                       -
  limitranges                     LimitRange                     n limits   -                       -
  namespaces                      Namespace                      c ns       status,finalize         -
  nodes                           Node                           c no       status,proxy            k
  persistentvolumeclaims          PersistentVolumeClaim          n pvc      status                  -
  persistentvolumes               PersistentVolume               c pv       status                  -
  pods                            Pod                            n po       status,binding,eviction,resize,CONTAINERS ag
  podtemplates                    PodTemplate                    n -        -                       g
  replicationcontrollers          ReplicationController          n rc       status,scale            ag
  resourcequotas                  ResourceQuota                  n quota    status                  -
  secrets                         Secret                         n -        -                       -
  serviceaccounts                 ServiceAccount                 n sa       token                   -
  services                        Service                        n svc      status                  a
admissionregistration.k8s.io v1
  mutatingwebhookconfigurations   MutatingWebhookConfiguration   c -        -                       g
  validatingwebhookconfigurations ValidatingWebhookConfiguration c -        -                       g
apiextensions.k8s.io v1
  customresourcedefinitions       CustomResourceDefinition       c crd,crds status                  g
apiregistration.k8s.io v1
  apiservices                     APIService                     c -        status                  -
apps v1
  controllerrevisions             ControllerRevision             n -        -                       -
  daemonsets                      DaemonSet                      n ds       status                  ag
  deployments                     Deployment                     n deploy   status,scale            ag
  replicasets                     ReplicaSet                     n rs       status,scale            agr
  statefulsets                    StatefulSet                    n sts      status,scale            agr
autoscaling v2,v1
  horizontalpodautoscalers        HorizontalPodAutoscaler        n hpa      status                  a
batch v1
  cronjobs                        CronJob                        n cj       status                  ag
  jobs                            Job                            n -        status                  ag
coordination.k8s.io v1
  leases                          Lease                          n -        -                       r
coordination.k8s.io v1beta1@33
  leasecandidates                 LeaseCandidate                 n -        -                       r
discovery.k8s.io v1
  endpointslices                  EndpointSlice                  n -        -                       g
events.k8s.io v1
  events                          Event                          n ev       -                       -
flowcontrol.apiserver.k8s.io v1
  flowschemas                     FlowSchema                     c -        status                  g
  prioritylevelconfigurations     PriorityLevelConfiguration     c -        status                  g
networking.k8s.io v1
  ingressclasses                  IngressClass                   c -        -                       g
  ingresses                       Ingress                        n ing      status                  g
  networkpolicies                 NetworkPolicy                  n netpol   -                       g
metrics.k8s.io v1beta1
  nodes                           NodeMetrics                    c -        -                       c
  pods                            PodMetrics                     n -        -                       c
node.k8s.io v1
  runtimeclasses                  RuntimeClass                   c -        -                       -
policy v1
  poddisruptionbudgets            PodDisruptionBudget            n pdb      status                  gr
rbac.authorization.k8s.io v1
  clusterrolebindings             ClusterRoleBinding             c -        -                       -
  clusterroles                    ClusterRole                    c -        -                       -
  rolebindings                    RoleBinding                    n -        -                       -
  roles                           Role                           n -        -                       -
resource.k8s.io v1@34,v1beta2@33,v1beta1@32,v1alpha3@31-33
  deviceclasses                   DeviceClass                    c -        -                       g
  resourceclaims                  ResourceClaim                  n -        status                  -
  resourceclaimtemplates          ResourceClaimTemplate          n -        -                       -
  resourceslices                  ResourceSlice                  c -        -                       g
resource.k8s.io v1@37,v1beta2@36,v1alpha3@33
  devicetaintrules                DeviceTaintRule                c -        status                  g
scheduling.k8s.io v1
  priorityclasses                 PriorityClass                  c pc       -                       -
scheduling.k8s.io v1alpha2@36-36,v1beta1@37,v1alpha3@37
  podgroups                       PodGroup                       n -        status                  g
  workloads                       Workload                       n -        -                       -
scheduling.k8s.io v1alpha1@35-35
  workloads                       Workload                       n -        -                       -
scheduling.k8s.io v1alpha3@37
  compositepodgroups              CompositePodGroup              n -        status                  g
storage.k8s.io v1
  csidrivers                      CSIDriver                      c -        -                       -
  csinodes                        CSINode                        c -        -                       r
  csistoragecapacities            CSIStorageCapacity             n -        -                       -
  storageclasses                  StorageClass                   c sc       -                       -
  volumeattachments               VolumeAttachment               c -        status                  -
storage.k8s.io v1@34,v1beta1
  volumeattributesclasses         VolumeAttributesClass          c vac      -                       -
"""


_STORAGES: Final = {
    ("v1", "events"): "events",
    # Later versions cannot read what 1.35 has stored.
    ("v1alpha1", "workloads"): "workloads.v1alpha1.scheduling.k8s.io",
}
_OF_CONTAINERS = "attach,ephemeralcontainers,exec,log,portforward,proxy"


def _read_table() -> Iterator[ResourceType]:
    group = versions = ""
    for line in _TABLE.strip().split("\n"):
        if not line.startswith(" "):
            group, versions = line.split()
            group = group.removeprefix("-")
            continue
        plural, kind, scope, short_names, subresources, flags = line.split()
        for served in versions.split(","):
            version, _, minors = served.partition("@")
            since, _, until = minors.partition("-")
            yield ResourceType(
                group=group,
                version=version,
                plural=plural,
                kind=kind,
                namespaced=scope == "n",
                short_names=_listed(short_names),
                categories=("all",) if "a" in flags else (),
                subresources=_listed(subresources.replace("CONTAINERS", _OF_CONTAINERS)),
                storage=_STORAGES.get((version, plural), ""),
                counts_generations="g" in flags,
                blind_updates="r" not in flags,
                keeps_status_on_create="k" in flags,
                computed="c" in flags,
                since=int(since or 0),
                until=int(until or NEWEST_MINOR),
            )


def _listed(column: str) -> tuple[str, ...]:
    return () if column == "-" else tuple(column.split(","))


BUILT_IN_TYPES: tuple[ResourceType, ...] = tuple(_read_table())
_BY_PATH: Final = {(one.group, one.version, one.plural): one for one in BUILT_IN_TYPES}
_BY_KIND: Final = {(one.api_version, one.kind): one for one in BUILT_IN_TYPES}


def collection_of(group: str, version: str, plural: str) -> str:
    """The name of the collection of the store that holds the objects of a resource."""
    found = _BY_PATH.get((group, version, plural))
    return found.collection if found is not None else f"{plural}.{group}" if group else plural


@define(eq=False)
class TypeRegistry:
    """Every resource, and which are served right now; custom ones are added and removed with their definitions.

    Args:
        minor: the minor version of Kubernetes that the server has. What it does not serve can be stored all the same:
            by a server of another version, before.
    """

    minor: int = DEFAULT_MINOR
    _types: dict[tuple[str, str, str], ResourceType] = field(factory=_BY_PATH.copy, init=False)
    _kinds: dict[tuple[str, str], ResourceType] = field(factory=_BY_KIND.copy, init=False)

    def __iter__(self) -> Iterator[ResourceType]:
        return (resource for resource in self._types.values() if self._serves(resource))

    def _serves(self, resource: ResourceType) -> bool:
        return resource.since <= self.minor <= resource.until

    def add(self, resource: ResourceType) -> None:
        """Serve *resource* from now on."""
        self._types[resource.group, resource.version, resource.plural] = resource
        self._kinds[resource.api_version, resource.kind] = resource

    def remove(self, group: str, plural: str) -> None:
        """Stop serving every version of a resource."""
        for key, resource in list(self._types.items()):
            if resource.group == group and resource.plural == plural:
                del self._types[key]
                self._kinds.pop((resource.api_version, resource.kind), None)

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """The resource behind a path, if it is served."""
        found = self._types.get((group, version, plural))
        return found if found is not None and self._serves(found) else None

    def served(self, resource: ResourceType) -> ResourceType | None:
        """*resource* itself if it is served, else the preferred version of it that is; None: no version is."""
        if self._serves(resource):
            return resource
        return next((one for one in self if (one.collection, one.kind) == (resource.collection, resource.kind)), None)

    def minors(self, resource: ResourceType) -> tuple[int, int]:
        """The first and the last minor version of Kubernetes that serves *resource* in any version."""
        kind = resource.collection, resource.kind
        versions = [one for one in self._types.values() if (one.collection, one.kind) == kind]
        return min(one.since for one in versions), max(one.until for one in versions)

    def serves_version(self, group: str, version: str) -> bool:
        """Whether any resource of this version of a group is served."""
        return any(one.group == group and one.version == version for one in self)

    def of_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """The resource of this version and kind, whether it is served or only stored."""
        return self._kinds.get((api_version, kind))

    def built_in(self, api_version: str, kind: str) -> ResourceType:
        """A built-in resource, whether it is served or only stored."""
        return self._kinds[api_version, kind]

    def core(self, plural: str) -> ResourceType:
        """A resource of the core group, which is always served."""
        return self._types["", "v1", plural]

    def groups(self) -> dict[str, dict[str, list[ResourceType]]]:
        """Group → version → resources, preferred versions first."""
        found: dict[str, dict[str, list[ResourceType]]] = defaultdict(lambda: defaultdict(list))
        for resource in self:
            found[resource.group][resource.version].append(resource)
        return {group: dict(versions) for group, versions in found.items()}

    def storages(self) -> Iterable[ResourceType]:
        """One resource per collection of the store: the first version that was added."""
        seen: dict[str, ResourceType] = {}
        for resource in self._types.values():
            seen.setdefault(resource.collection, resource)
        return seen.values()


def custom_types(definition: dict[str, Any]) -> list[ResourceType]:
    """The resources a CustomResourceDefinition (its fields as stored) defines."""
    spec = definition["spec"]
    names = spec["names"]
    types = []
    for version in spec.get("versions", ()):
        if not version.get("served", True):
            continue
        subresources = version.get("subresources") or {}
        scale = subresources.get("scale")
        types.append(
            ResourceType(
                group=spec["group"],
                version=version["name"],
                plural=names["plural"],
                kind=names["kind"],
                namespaced=spec.get("scope", "Namespaced") == "Namespaced",
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
                counts_generations=True,
                blind_updates=False,
                keeps_status_on_create="status" not in subresources,
                custom=True,
                schema=compile_schema((version.get("schema") or {}).get("openAPIV3Schema")),
                printed_columns=tuple(version.get("additionalPrinterColumns") or ()),
                scale_paths=None if scale is None else _scale_paths(scale),
            )
        )
    return types


def _scale_paths(scale: dict[str, Any]) -> ScalePaths:
    """The paths of a definition, which have the form ``.spec.replicas``."""
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return ScalePaths(*(tuple((scale.get(name) or "").split(".")[1:]) for name in names))
