"""The kinds that API servers serve in several versions, or not at all: one row each, and how each version is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from trio_sched.documents.json_values import Json
from trio_sched.kube_client.kinds import Kind, T
from trio_sched.kube_client.versions.device_shapes import (
    claim_from_v1alpha3,
    claim_from_v1beta1,
    claim_to_v1beta1,
    slice_from_v1alpha3,
    slice_from_v1beta1,
    slice_to_v1alpha3,
    slice_to_v1beta1,
    taint_rule_from_v1alpha3,
    template_from_v1beta1,
    template_to_v1beta1,
)
from trio_sched.kube_client.versions.pod_group_shapes import (
    group_from_v1beta1,
    group_to_v1beta1,
    workload_from_v1beta1,
)
from trio_sched.objects.any_object import AnyObject, CustomHead
from trio_sched.objects.metadata import WireObject
from trio_sched.objects.pod_groups import workload_groups

Convert = Callable[[Json], Json]

DEVICES: Final = "resource.k8s.io"
SCHEDULING: Final = "scheduling.k8s.io"


@frozen
class ApiVersion:
    """A version of a kind.

    Attributes:
        name: ``v1beta1``.
        read: an object in this version → the same as its class here expects it; None: it is alike.
        write: the other way, for patches, too.
        other: the plural and the class of the objects that this version has instead of the kind; None: it has the kind.
    """

    name: str
    read: Convert | None = None
    write: Convert | None = None
    other: tuple[str, type[WireObject]] | None = None

    def plural(self, kind: Kind[Any]) -> str:
        """The plural under which this version of *kind* is served."""
        return kind.plural if self.other is None else self.other[0]


@frozen(kw_only=True)
class VersionedKind:
    """A kind that a server may serve in one of several versions, or not at all.

    Attributes:
        versions: the best first.
        cost: what is different where none of them is served.
        fix: what makes a server serve it.
    """

    versions: tuple[ApiVersion, ...]
    cost: str
    fix: str


_NO_DEVICES: Final = "pods with resource claims stay pending"
_SERVE_DEVICES: Final = (
    "Kubernetes serves it from 1.34 on; 1.32 and 1.33 do with the feature gate DynamicResourceAllocation and "
    "--runtime-config=resource.k8s.io/v1beta1=true of kube-apiserver, 1.31 with v1alpha3 in place of v1beta1"
)
_ALIKE: Final = (ApiVersion("v1"), ApiVersion("v1beta2"))
_SERVE_GROUPS: Final = (
    "kube-apiserver of 1.37 serves it with the feature gate GenericWorkload and "
    "--runtime-config=scheduling.k8s.io/v1beta1=true, that of 1.36 with v1alpha2 in place of v1beta1"
)

VERSIONED: Final[Mapping[tuple[str, str], VersionedKind]] = {
    (DEVICES, "resourceclaims"): VersionedKind(
        versions=(
            *_ALIKE,
            ApiVersion("v1beta1", claim_from_v1beta1, claim_to_v1beta1),
            ApiVersion("v1alpha3", claim_from_v1alpha3, claim_to_v1beta1),
        ),
        cost=_NO_DEVICES,
        fix=_SERVE_DEVICES,
    ),
    (DEVICES, "resourceclaimtemplates"): VersionedKind(
        versions=(
            *_ALIKE,
            ApiVersion("v1beta1", template_from_v1beta1, template_to_v1beta1),
            ApiVersion("v1alpha3", template_from_v1beta1, template_to_v1beta1),
        ),
        cost=_NO_DEVICES,
        fix=_SERVE_DEVICES,
    ),
    (DEVICES, "resourceslices"): VersionedKind(
        versions=(
            *_ALIKE,
            ApiVersion("v1beta1", slice_from_v1beta1, slice_to_v1beta1),
            ApiVersion("v1alpha3", slice_from_v1alpha3, slice_to_v1alpha3),
        ),
        cost=_NO_DEVICES,
        fix=_SERVE_DEVICES,
    ),
    (DEVICES, "deviceclasses"): VersionedKind(
        versions=(*_ALIKE, ApiVersion("v1beta1"), ApiVersion("v1alpha3")), cost=_NO_DEVICES, fix=_SERVE_DEVICES
    ),
    (DEVICES, "devicetaintrules"): VersionedKind(
        versions=(*_ALIKE, ApiVersion("v1alpha3", taint_rule_from_v1alpha3)),
        cost="devices have the taints only that their drivers publish",
        fix="Kubernetes serves it from 1.37 on; kube-apiserver of 1.36 does with the feature gate DRADeviceTaintRules "
        "and --runtime-config=resource.k8s.io/v1beta2=true, that of 1.33 to 1.35 with v1alpha3 and DRADeviceTaints",
    ),
    (SCHEDULING, "podgroups"): VersionedKind(
        versions=(
            ApiVersion("v1beta1", group_from_v1beta1, group_to_v1beta1),
            ApiVersion("v1alpha3", group_from_v1beta1, group_to_v1beta1),
            ApiVersion("v1alpha2"),
            ApiVersion("v1alpha1", other=(workload_groups.PLURAL, workload_groups.Workload)),
        ),
        cost="pods of pod groups stay pending, those that name a workload of 1.35 are scheduled one by one",
        fix=f"{_SERVE_GROUPS}, and that of 1.35 the workloads that contain them with v1alpha1",
    ),
    (SCHEDULING, "compositepodgroups"): VersionedKind(
        versions=(ApiVersion("v1alpha3"),),
        cost="pods of pod groups that have a parent stay pending",
        fix="kube-apiserver of 1.37 serves it with the feature gate CompositePodGroup and "
        "--runtime-config=scheduling.k8s.io/v1alpha3=true",
    ),
    (SCHEDULING, "workloads"): VersionedKind(
        versions=(
            ApiVersion("v1beta1", workload_from_v1beta1),
            ApiVersion("v1alpha3", workload_from_v1beta1),
            ApiVersion("v1alpha2"),
        ),
        cost="nothing is made of the templates of workloads",
        fix=_SERVE_GROUPS,
    ),
}
"""Group and plural → the versions that can be read. Every other kind is served in the version of its `Kind` only."""

GROUPS: Final = frozenset(group for group, _plural in VERSIONED)


def versioned(kind: Kind[Any]) -> VersionedKind | None:
    """The row of *kind*; None if there is one version of it, or if it is wanted in its own shape and no other."""
    if kind.keep_raw is not None or kind.type is AnyObject:
        return None
    return VERSIONED.get((kind.group, kind.plural))


@cache
def in_version(kind: Kind[T], version: ApiVersion) -> Kind[T]:
    """*kind* in another version, decoded into the same objects.

    Only where the shape differs it is decoded by way of a dict, one by one.
    """
    if version.name == kind.version:
        return kind
    if version.other is not None:
        plural, type_ = version.other
        return evolve(kind, version=version.name, plural=plural, type=type_)  # type: ignore[arg-type]
    if version.read is None:
        return evolve(kind, version=version.name)
    read: Any = partial(_read, version.read, kind.type)
    return evolve(kind, version=version.name, type=CustomHead, keep_raw=read)  # type: ignore[arg-type]


def body_in_version(kind: Kind[Any], served: Kind[Any], body: Json) -> Json:
    """An object of *kind*, or a patch of one, as it is written in the version *served*."""
    if served.version == kind.version or body.get("apiVersion", kind.api_version) != kind.api_version:
        return body
    row = versioned(kind)
    version = next((one for one in row.versions if one.name == served.version), None) if row else None
    converted = body if version is None or version.write is None else version.write(body)
    return {**converted, "apiVersion": served.api_version} if "apiVersion" in converted else converted


def _read(read: Convert, type_: type[Any], _head: CustomHead, raw: bytes) -> Any:
    return msgspec.convert(read(msgspec.json.decode(raw)), type_)
