"""Rules of PersistentVolumes, storage classes and what CSI drivers say."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.validation.core.resources import quantity_problems
from trio_sched.simulator.validation.core.volume_claims import VOLUME_MODES, access_mode_problems, positive_problems
from trio_sched.simulator.validation.core.volumes import backstep_problems, driver_name_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    too_long,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import immutable, same
from trio_sched.simulator.validation.meta.numbers import negative_problems
from trio_sched.simulator.validation.meta.selectors import (
    key_problems,
    label_selector_problems,
    node_selector_problems,
    topology_term_problems,
)
from trio_sched.simulator.validation.meta.shapes import fields_of

_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "hostPath": ("path",),
    "glusterfs": ("endpoints", "path"),
    "nfs": ("server", "path"),
    "rbd": ("monitors", "image"),
    "iscsi": ("targetPortal", "iqn"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "quobyte": ("registry", "volume"),
    "azureDisk": ("diskName", "diskURI"),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "local": ("path",),
    "csi": ("driver", "volumeHandle"),
}
"""Fields without which a source is refused."""
_CSI_SECRETS: Final = tuple(
    f"{use}SecretRef" for use in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand")
)


def volume_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new PersistentVolume."""
    yield from volume_spec_problems(fields.get("spec") or {}, "spec", is_inline=False)


def volume_spec_problems(spec: Json, path: str, *, is_inline: bool) -> Iterator[FieldProblem]:
    """What is wrong with the spec of a volume; in a VolumeAttachment it may be inline."""
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    if is_inline:
        for field in ("claimRef", "capacity", "storageClassName"):
            if spec.get(field):
                yield forbidden_field(f"{path}.{field}", "may not be specified in the context of inline volumes")
        if spec.get("csi") is None:
            yield required(f"{path}.csi", "has to be specified in the context of inline volumes")
    if not modes:
        yield required(f"{path}.accessModes")
    yield from access_mode_problems(modes, f"{path}.accessModes")
    if not is_inline:
        if not capacity:
            yield required(f"{path}.capacity")
        if set(capacity) != {"storage"}:
            yield unsupported(f"{path}.capacity", capacity, ("storage",))
        for name, quantity in capacity.items():
            yield from quantity_problems(name, quantity, f"{path}.capacity[{name}]")
            yield from positive_problems(quantity, f"{path}.capacity[{name}]")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _RECLAIM_POLICIES:
        yield unsupported(f"{path}.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            yield required(f"{path}.nodeAffinity.required", "must specify required node constraints")
        else:
            yield from node_selector_problems(affinity["required"], f"{path}.nodeAffinity.required")
    yield from _source_problems(spec, path, has_affinity=affinity is not None)
    if spec.get("storageClassName") and (problem := names.subdomain(spec["storageClassName"])):
        yield bad_value(f"{path}.storageClassName", spec["storageClassName"], problem)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in VOLUME_MODES:
        yield unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES)
    attributes = spec.get("volumeAttributesClassName")
    if attributes is not None:
        where = f"{path}.volumeAttributesClassName"
        if not attributes:
            yield required(where, "an empty string is disallowed")
        elif problem := names.subdomain(attributes):
            yield bad_value(where, attributes, problem)
        if spec.get("csi") is None:
            yield required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def _source_problems(spec: Json, path: str, *, has_affinity: bool) -> Iterator[FieldProblem]:
    sources = [name for name in fields_of("core.v1.PersistentVolumeSource") if spec.get(name) is not None]
    if not sources:
        yield required(path, "must specify a volume type")
        return
    first, *others = sources
    for other in others:
        yield forbidden_field(f"{path}.{other}", "may not specify more than 1 volume type")
    source, where = spec[first], f"{path}.{first}"
    for field in _REQUIRED.get(first, ()):
        if not source.get(field):
            yield required(f"{where}.{field}")
    match first:
        case "csi":
            if source.get("driver"):
                yield from driver_name_problems(source["driver"], f"{where}.driver")
            for field in _CSI_SECRETS:
                if source.get(field) is not None:
                    yield from _secret_problems(source[field], f"{where}.{field}")
        case "local":
            yield from backstep_problems(source.get("path") or "", f"{where}.path")
            if not has_affinity:
                yield required(f"{path}.nodeAffinity", "Local volume requires node affinity")
        case "hostPath":
            yield from backstep_problems(source.get("path") or "", f"{where}.path")
            is_root = posixpath.normpath(source.get("path") or ".") == "/"
            if is_root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
                detail = "may not be 'recycle' for a hostPath mount of '/'"
                yield forbidden_field(f"{path}.persistentVolumeReclaimPolicy", detail)
        case "nfs" if source.get("path") and not source["path"].startswith("/"):
            yield bad_value(f"{where}.path", source["path"], "must be an absolute path")
        case _:
            pass


def _secret_problems(secret: Json, path: str) -> Iterator[FieldProblem]:
    for field, check in (("name", names.subdomain), ("namespace", names.dns_label)):
        value = secret.get(field)
        if not value:
            yield required(f"{path}.{field}")
        elif problem := check(value):
            yield bad_value(f"{path}.{field}", value, problem)


def volume_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a PersistentVolume."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for name in fields_of("core.v1.PersistentVolumeSource"):
        had, has = before.get(name), after.get(name)
        if name == "csi" and had and has and "controllerExpandSecretRef" not in had:
            has = {field: value for field, value in has.items() if field != "controllerExpandSecretRef"}
        if not same(had, has):
            detail = "spec.persistentvolumesource is immutable after creation"
            yield forbidden_field("spec.persistentvolumesource", detail)
            break
    yield from immutable(before, after, "volumeMode")
    if before.get("nodeAffinity") is not None:
        yield from immutable(before, after, "nodeAffinity")


def storage_class_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new storage class."""
    yield from _driver_problems(fields.get("provisioner") or "", "provisioner")
    yield from _parameter_problems(fields.get("parameters") or {})
    policy, mode = fields.get("reclaimPolicy"), fields.get("volumeBindingMode")
    if policy and policy not in ("Delete", "Retain"):
        yield unsupported("reclaimPolicy", policy, ("Delete", "Retain"))
    if mode not in ("Immediate", "WaitForFirstConsumer"):
        yield unsupported("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    yield from topology_term_problems(fields.get("allowedTopologies") or [], "allowedTopologies")


def storage_class_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a storage class."""
    yield from immutable(old, new, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode", path="")


def _driver_problems(driver: str, path: str) -> Iterator[FieldProblem]:
    if not driver:
        yield required(path)
    else:
        yield from key_problems(driver.lower(), path)


def _parameter_problems(parameters: dict[str, str]) -> Iterator[FieldProblem]:
    if "" in parameters:
        yield bad_value("parameters", "", "field can not be empty.")
    if len(parameters) > 512:
        yield too_long("parameters", 512)
    elif sum(len(key) + len(value) for key, value in parameters.items()) > 256 << 10:
        yield too_long("parameters", 256 << 10)


def attributes_class_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a VolumeAttributesClass."""
    parameters = fields.get("parameters") or {}
    yield from _driver_problems(fields.get("driverName") or "", "driverName")
    yield from _parameter_problems(parameters)
    if not parameters:
        yield required("parameters", "must contain at least one key/value pair")


def attributes_class_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a VolumeAttributesClass."""
    for field in ("driverName", "parameters"):
        if not same(old.get(field), new.get(field)):
            yield forbidden_field(field, f"updates to {field} are forbidden.")


def csi_node_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new CSINode."""
    seen: set[str] = set()
    for index, driver in enumerate((fields.get("spec") or {}).get("drivers") or ()):
        path, name, node = f"spec.drivers[{index}]", driver.get("name") or "", driver.get("nodeID") or ""
        yield from driver_name_problems(name, f"{path}.name")
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        if not node:
            yield required(f"{path}.nodeID")
        elif len(node) > 256:
            yield bad_value(f"{path}.nodeID", node, "must be 256 characters or less")
        yield from negative_problems(driver.get("allocatable") or {}, f"{path}.allocatable", "count")
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if not key:
                yield required(path)
            if key in keys:
                yield duplicate(path, key)
            keys.add(key)
            yield from key_problems(key, path)


def csi_node_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a CSINode: only the count of a driver's volumes may change."""
    changed = {driver.get("name"): driver for driver in (new.get("spec") or {}).get("drivers") or ()}
    for driver in (old.get("spec") or {}).get("drivers") or ():
        after = changed.get(driver.get("name"), driver)
        if any(not same(driver.get(field), after.get(field)) for field in ("nodeID", "topologyKeys")):
            yield bad_value("spec.drivers", after, "field is immutable")


def csi_driver_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new CSIDriver."""
    spec, name = fields.get("spec") or {}, fields["metadata"].get("name") or ""
    if len(name) > 63:
        yield too_long("metadata.name", 63)
    policy = spec.get("fsGroupPolicy")
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    if policy is not None and policy not in policies:
        yield unsupported("spec.fsGroupPolicy", policy, policies)
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Ephemeral", "Persistent"):
            yield unsupported("spec.volumeLifecycleModes", mode, ("Ephemeral", "Persistent"))
    audiences: set[str] = set()
    for index, token in enumerate(spec.get("tokenRequests") or ()):
        path, audience = f"spec.tokenRequests[{index}]", token.get("audience") or ""
        if audience in audiences:
            yield duplicate(f"{path}.audience", audience)
        audiences.add(audience)
        seconds = token.get("expirationSeconds")
        if seconds is not None and not 600 <= seconds <= 1 << 32:
            yield bad_value(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield bad_value("spec.serviceAccountTokenInSecrets", in_secrets, detail)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        detail = "must be greater than or equal to 10 seconds"
        yield bad_value("spec.nodeAllocatableUpdatePeriodSeconds", period, detail)


def csi_driver_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a CSIDriver."""
    yield from immutable(old.get("spec") or {}, new.get("spec") or {}, "attachRequired", "volumeLifecycleModes")


def capacity_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new CSIStorageCapacity."""
    name = fields.get("storageClassName") or ""
    if problem := names.subdomain(name):
        yield bad_value("storageClassName", name, problem)
    yield from label_selector_problems(fields.get("nodeTopology"), "nodeTopology")
    if fields.get("capacity") is not None and parse_nano(fields["capacity"]) < 0:
        yield bad_value("capacity", str(fields["capacity"]), "must be greater than or equal to 0")


def capacity_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a CSIStorageCapacity."""
    for field in ("nodeTopology", "storageClassName"):
        # An empty selector of nodes selects all, one that is left out none.
        if old.get(field) != new.get(field):
            yield bad_value(field, new.get(field), "field is immutable")


def attachment_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new VolumeAttachment."""
    spec = fields.get("spec") or {}
    source, node = spec.get("source") or {}, spec.get("nodeName") or ""
    yield from driver_name_problems(spec.get("attacher") or "", "spec.attacher")
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if name is None and inline is None:
        yield required("spec.source", detail)
    elif name is not None and inline is not None:
        yield forbidden_field("spec.source", detail)
    elif name == "":
        yield required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    elif inline is not None:
        yield from volume_spec_problems(inline, "spec.source.inlineVolumeSpec", is_inline=True)
    if name is not None and (problem := names.subdomain(name)):
        yield bad_value("spec.source.persistentVolumeName", name, problem)
    if problem := names.subdomain(node):
        yield bad_value("spec.nodeName", node, problem)


def attachment_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a VolumeAttachment."""
    yield from immutable(old, new, "spec", path="")


def attachment_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a VolumeAttachment."""
    for name in ("attachError", "detachError"):
        code = ((new.get("status") or {}).get(name) or {}).get("errorCode", 0)
        if not 0 <= code < 1 << 31:
            detail = f"must be between 0 and {(1 << 31) - 1}, inclusive"
            yield bad_value(f"status.{name}.errorCode", code, detail)
