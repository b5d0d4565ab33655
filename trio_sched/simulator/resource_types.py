"""Which kinds of objects the server knows, under which paths, and how each behaves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define, field, frozen

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@frozen(kw_only=True, eq=False)
class ResourceType:
    """One resource in one API version.

    Attributes:
        storage: the collection its objects are kept in; versions of one resource share it.
        subresources: names such as ``status`` and ``scale``.
        counts_generations: ``metadata.generation`` is kept, rising when the spec changes.
        blind_updates: a PUT without ``resourceVersion`` is accepted.
        keeps_status_on_create: a creator may set ``status`` (kubelets create their node so).
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
    api_version: str = field(init=False)
    qualified: str = field(init=False)
    prefix: bytes = field(init=False)

    @api_version.default
    def _api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @qualified.default
    def _qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @prefix.default
    def _prefix(self) -> bytes:
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @property
    def singular(self) -> str:
        """The name for one of them, as kubectl takes it."""
        return self.kind.lower()

    @property
    def collection(self) -> str:
        """The collection of the store that holds these objects."""
        return self.storage or self.qualified

    @property
    def has_status(self) -> bool:
        """Whether status is written through a subresource of its own."""
        return "status" in self.subresources


# One line per resource: group, versions (preferred first), plural, kind, namespaced?, short names, flags.
# Flags: s = status subresource, x = scale subresource, g = counts generations, r = PUT needs a resourceVersion,
# a = in kubectl's category "all", k = status may be set at creation.
_TABLE = """
-                       v1              bindings                  Binding                  n -        -
-                       v1              configmaps                ConfigMap                n cm       -
-                       v1              endpoints                 Endpoints                n ep       -
-                       v1              events                    Event                    n ev       -
-                       v1              limitranges               LimitRange               n limits   -
-                       v1              namespaces                Namespace                c ns       s
-                       v1              nodes                     Node                     c no       sk
-                       v1              persistentvolumeclaims    PersistentVolumeClaim    n pvc      s
-                       v1              persistentvolumes         PersistentVolume         c pv       s
-                       v1              pods                      Pod                      n po       sag
-                       v1              podtemplates              PodTemplate              n -        g
-                       v1              replicationcontrollers    ReplicationController    n rc       sxag
-                       v1              resourcequotas            ResourceQuota            n quota    s
-                       v1              secrets                   Secret                   n -        -
-                       v1              serviceaccounts           ServiceAccount           n sa       -
-                       v1              services                  Service                  n svc      sa
admissionregistration.k8s.io v1         mutatingwebhookconfigurations   MutatingWebhookConfiguration   c - g
admissionregistration.k8s.io v1         validatingwebhookconfigurations ValidatingWebhookConfiguration c - g
apiextensions.k8s.io    v1              customresourcedefinitions CustomResourceDefinition c crd,crds sg
apiregistration.k8s.io  v1              apiservices               APIService               c -        s
apps                    v1              controllerrevisions       ControllerRevision       n -        -
apps                    v1              daemonsets                DaemonSet                n ds       sag
apps                    v1              deployments               Deployment               n deploy   sxag
apps                    v1              replicasets               ReplicaSet               n rs       sxagr
apps                    v1              statefulsets              StatefulSet              n sts      sxagr
autoscaling             v2              horizontalpodautoscalers  HorizontalPodAutoscaler  n hpa      sa
batch                   v1              cronjobs                  CronJob                  n cj       sag
batch                   v1              jobs                      Job                      n -        sag
coordination.k8s.io     v1              leases                    Lease                    n -        r
coordination.k8s.io     v1beta1         leasecandidates           LeaseCandidate           n -        r
discovery.k8s.io        v1              endpointslices            EndpointSlice            n -        g
events.k8s.io           v1              events                    Event                    n ev       -
flowcontrol.apiserver.k8s.io v1         flowschemas               FlowSchema               c -        sg
flowcontrol.apiserver.k8s.io v1         prioritylevelconfigurations PriorityLevelConfiguration c -    sg
networking.k8s.io       v1              ingressclasses            IngressClass             c -        g
networking.k8s.io       v1              ingresses                 Ingress                  n ing      sg
networking.k8s.io       v1              networkpolicies           NetworkPolicy            n netpol   g
node.k8s.io             v1              runtimeclasses            RuntimeClass             c -        -
policy                  v1              poddisruptionbudgets      PodDisruptionBudget      n pdb      sgr
rbac.authorization.k8s.io v1            clusterrolebindings       ClusterRoleBinding       c -        -
rbac.authorization.k8s.io v1            clusterroles              ClusterRole              c -        -
rbac.authorization.k8s.io v1            rolebindings              RoleBinding              n -        -
rbac.authorization.k8s.io v1            roles                     Role                     n -        -
resource.k8s.io         v1,v1beta2 deviceclasses          DeviceClass              c -        g
resource.k8s.io         v1,v1beta2 resourceclaims         ResourceClaim            n -        s
resource.k8s.io         v1,v1beta2 resourceclaimtemplates ResourceClaimTemplate    n -        -
resource.k8s.io         v1,v1beta2 resourceslices         ResourceSlice            c -        g
resource.k8s.io         v1beta2 devicetaintrules         DeviceTaintRule          c -        sg
scheduling.k8s.io       v1              priorityclasses           PriorityClass            c pc       -
scheduling.k8s.io       v1alpha2        podgroups                 PodGroup                 n -        sg
scheduling.k8s.io       v1alpha2        workloads                 Workload                 n -        -
storage.k8s.io          v1              csidrivers                CSIDriver                c -        -
storage.k8s.io          v1              csinodes                  CSINode                  c -        r
storage.k8s.io          v1              csistoragecapacities      CSIStorageCapacity       n -        -
storage.k8s.io          v1              storageclasses            StorageClass             c sc       -
storage.k8s.io          v1              volumeattachments         VolumeAttachment         c -        s
storage.k8s.io          v1              volumeattributesclasses   VolumeAttributesClass    c vac      -
"""

_EXTRA_SUBRESOURCES = {"pods": ("binding", "eviction"), "namespaces": ("finalize",)}


def _read_table() -> Iterator[ResourceType]:
    for line in _TABLE.split("\n"):
        if not line.strip():
            continue
        group, versions, plural, kind, scope, short_names, flags = line.split()
        group = "" if group == "-" else group
        subresources = (
            *(("status",) if "s" in flags else ()),
            *(("scale",) if "x" in flags else ()),
            *(_EXTRA_SUBRESOURCES.get(plural, ()) if not group else ()),
        )
        for version in versions.split(","):
            yield ResourceType(
                group=group,
                version=version,
                plural=plural,
                kind=kind,
                namespaced=scope == "n",
                short_names=() if short_names == "-" else tuple(short_names.split(",")),
                categories=("all",) if "a" in flags else (),
                subresources=subresources,
                storage="events" if plural == "events" else "",
                counts_generations="g" in flags,
                blind_updates="r" not in flags,
                keeps_status_on_create="k" in flags,
            )


BUILT_IN_TYPES: tuple[ResourceType, ...] = tuple(_read_table())


@define(eq=False)
class TypeRegistry:
    """Every resource that is served right now; custom ones come and go with their definitions."""

    _types: dict[tuple[str, str, str], ResourceType] = field(factory=dict, init=False)
    _kinds: dict[tuple[str, str], ResourceType] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        for resource in BUILT_IN_TYPES:
            self.add(resource)

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._types.values())

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
        return self._types.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """The resource whose objects say this about themselves, if it is served."""
        return self._kinds.get((api_version, kind))

    def core(self, plural: str) -> ResourceType:
        """A resource of the core group, which is always served."""
        return self._types["", "v1", plural]

    def groups(self) -> dict[str, dict[str, list[ResourceType]]]:
        """Group → version → resources, preferred versions first."""
        found: dict[str, dict[str, list[ResourceType]]] = defaultdict(lambda: defaultdict(list))
        for resource in self._types.values():
            found[resource.group][resource.version].append(resource)
        return {group: dict(versions) for group, versions in found.items()}

    def storages(self) -> Iterable[ResourceType]:
        """One resource per collection of the store: the first version that was added."""
        seen: dict[str, ResourceType] = {}
        for resource in self._types.values():
            seen.setdefault(resource.collection, resource)
        return seen.values()


def custom_types(definition: dict[str, Any]) -> list[ResourceType]:
    """The resources a CustomResourceDefinition (its fields as stored) asks to be served."""
    spec = definition["spec"]
    names = spec["names"]
    types = []
    for version in spec.get("versions", ()):
        if not version.get("served", True):
            continue
        subresources = version.get("subresources") or {}
        types.append(
            ResourceType(
                group=spec["group"],
                version=version["name"],
                plural=names["plural"],
                kind=names["kind"],
                namespaced=spec.get("scope", "Namespaced") == "Namespaced",
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=("status",) if "status" in subresources else (),
                counts_generations=True,
                blind_updates=False,
                keeps_status_on_create="status" not in subresources,
                custom=True,
            )
        )
    return types
