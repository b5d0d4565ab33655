"""Rules of the volumes of pods.

Sources of volumes that only a kubelet looks into are checked for the fields that they require.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.validation.core.environment import field_problems, resource_field_problems
from trio_sched.simulator.validation.core.volume_claims import claim_spec_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import template_metadata_problems
from trio_sched.simulator.validation.meta.shapes import fields_of

_PROJECTIONS: Final = ("secret", "downwardAPI", "configMap", "serviceAccountToken")
"""The API server drops the other two, whose feature gates are off by default."""
_FIELDS: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_HOST_PATH_TYPES: Final = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "nfs": ("server", "path"),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "quobyte": ("registry", "volume"),
    "image": ("reference",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "csi": ("driver",),
    "iscsi": ("targetPortal", "iqn"),
}
"""Fields without which a source is refused."""

Volumes = dict[str, Json]


def volume_problems(volumes: list[Json], path: str, pod_name: str) -> tuple[Volumes, list[FieldProblem]]:
    """The volumes that are right, by name, and what is wrong with the others."""
    right: Volumes = {}
    problems: list[FieldProblem] = []
    created = {f"{pod_name}-{volume.get('name')}" for volume in volumes if "ephemeral" in volume} if pod_name else set()
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name") or ""
        found = list(_source_problems(volume, where, pod_name))
        if not name:
            found.append(required(f"{where}.name"))
        elif problem := names.dns_label(name):
            found.append(bad_value(f"{where}.name", name, problem))
        if name in right:
            found.append(duplicate(f"{where}.name", name))
        if found:
            problems += found
        else:
            right[name] = volume
        claimed = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claimed in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            problems.append(bad_value(f"{where}.persistentVolumeClaim.claimName", claimed, detail))
    return right, problems


def _source_problems(volume: Json, path: str, pod_name: str) -> Iterator[FieldProblem]:
    sources = [name for name in fields_of("core.v1.VolumeSource") if volume.get(name) is not None]
    if not sources:
        yield required(path, "must specify a volume type")
    first, *others = sources or [""]
    for other in others:
        yield forbidden_field(f"{path}.{other}", "may not specify more than 1 volume type")
    source, where = volume.get(first) or {}, f"{path}.{first}"
    for field in _REQUIRED.get(first, ()):
        if not source.get(field):
            yield required(f"{where}.{field}")
    if check := _CHECKS.get(first):
        yield from check(source, where)
    if first == "ephemeral" and pod_name and volume.get("name"):
        name = f"{pod_name}-{volume['name']}"
        if problem := names.subdomain(name):
            yield bad_value(f"{path}.name", volume["name"], f'PVC name "{name}": {problem}')


def _empty_dir(source: Json, path: str) -> Iterator[FieldProblem]:
    limit = source.get("sizeLimit")
    if limit is not None and parse_nano(limit) < 0:
        yield forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Json, path: str) -> Iterator[FieldProblem]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from backstep_problems(source["path"], f"{path}.path")
    if source.get("type") is not None and source["type"] not in _HOST_PATH_TYPES:
        yield unsupported(f"{path}.type", source["type"], _HOST_PATH_TYPES)


def _with_items(source: Json, path: str) -> Iterator[FieldProblem]:
    yield from _mode_problems(source, path, "defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        yield from _item_problems(item, f"{path}.items[{index}]")


def _item_problems(item: Json, path: str) -> Iterator[FieldProblem]:
    if not item.get("key"):
        yield required(f"{path}.key")
    if not item.get("path"):
        yield required(f"{path}.path")
    yield from local_path_problems(item.get("path") or "", f"{path}.path")
    yield from _mode_problems(item, path, "mode")


def _mode_problems(source: Json, path: str, field: str) -> Iterator[FieldProblem]:
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= 0o777:
        detail = "must be a number between 0 and 0777 (octal), both inclusive"
        yield bad_value(f"{path}.{field}", mode, detail)


def _downward_api(source: Json, path: str) -> Iterator[FieldProblem]:
    yield from _mode_problems(source, path, "defaultMode")
    for item in source.get("items") or ():
        yield from _downward_file_problems(item, path)


def _downward_file_problems(item: Json, path: str) -> Iterator[FieldProblem]:
    if not item.get("path"):
        yield required(f"{path}.path")
    yield from local_path_problems(item.get("path") or "", f"{path}.path")
    if item.get("fieldRef") is not None:
        yield from field_problems(item["fieldRef"], f"{path}.fieldRef", _FIELDS)
        if item.get("resourceFieldRef") is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield bad_value(path, "resource", detail)
    elif item.get("resourceFieldRef") is not None:
        yield from resource_field_problems(item["resourceFieldRef"], f"{path}.resourceFieldRef", needs_container=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode_problems(item, path, "mode")


def _projected(source: Json, path: str) -> Iterator[FieldProblem]:
    yield from _mode_problems(source, path, "defaultMode")
    paths: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (one := projection.get(kind)) is not None:
                if not one.get("name"):
                    yield required(f"{where}.{kind}.name")
                for number, item in enumerate(one.get("items") or ()):
                    yield from _item_problems(item, f"{where}.{kind}.items[{number}]")
                    yield from _once(item.get("path"), paths, path, one.get("name"))
        if (one := projection.get("downwardAPI")) is not None:
            for item in one.get("items") or ():
                yield from _downward_file_problems(item, f"{where}.downwardAPI")
                yield from _once(item.get("path"), paths, path, item.get("path"))
        if (one := projection.get("serviceAccountToken")) is not None:
            yield from _token_problems(one, f"{where}.serviceAccountToken", path)
        kinds = [kind for kind in _PROJECTIONS if projection.get(kind) is not None]
        if len(kinds) > 1:
            yield forbidden_field(where, "may not specify more than 1 volume type per source")


def _once(item_path: Any, seen: set[str], path: str, shown: Any) -> Iterator[FieldProblem]:
    if item_path and item_path in seen:
        yield bad_value(path, shown, "conflicting duplicate paths")
    seen.add(item_path or "")


def _token_problems(token: Json, path: str, volume_path: str) -> Iterator[FieldProblem]:
    seconds = token.get("expirationSeconds", 3600)
    if seconds < 600:
        yield bad_value(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > 1 << 32:
        yield bad_value(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if not token.get("path"):
        yield required(f"{volume_path}.path")
    else:
        yield from local_path_problems(token["path"], f"{volume_path}.path")


def _csi(source: Json, path: str) -> Iterator[FieldProblem]:
    if source.get("driver"):
        yield from driver_name_problems(source["driver"], f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield required(f"{path}.nodePublishSecretRef.name")
    elif secret is not None and (problem := names.subdomain(secret["name"])):
        yield bad_value(f"{path}.name", secret["name"], problem)


def _ephemeral(source: Json, path: str) -> Iterator[FieldProblem]:
    template, where = source.get("volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        yield required(where)
        return
    yield from template_metadata_problems(template.get("metadata") or {}, f"{where}.metadata")
    yield from claim_spec_problems(template.get("spec") or {}, f"{where}.spec")


def _nfs(source: Json, path: str) -> Iterator[FieldProblem]:
    if source.get("path") and not source["path"].startswith("/"):
        yield bad_value(f"{path}.path", source["path"], "must be an absolute path")


_CHECKS: Final[Mapping[str, Callable[[Json, str], Iterator[FieldProblem]]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _with_items,
    "configMap": _with_items,
    "downwardAPI": _downward_api,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "nfs": _nfs,
}


def driver_name_problems(name: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the name of a CSI driver."""
    if not name:
        yield required(path)
    elif len(name) > 63:
        yield FieldProblem("FieldValueTooLong", path, "Too long: may not be more than 63 bytes")
    if name and (problem := names.subdomain(name.lower())):
        yield bad_value(path, name, problem)


def local_path_problems(target: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a path below the root of a volume."""
    if target.startswith("/"):
        yield bad_value(path, target, "must be a relative path")
    yield from backstep_problems(target, path)
    if target.startswith("..") and not target.startswith("../"):
        yield bad_value(path, target, "must not start with '..'")


def descending_path_problems(target: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a path that leads down only."""
    if target.startswith("/"):
        yield bad_value(path, target, "must be a relative path")
    yield from backstep_problems(target, path)


def backstep_problems(target: str, path: str) -> Iterator[FieldProblem]:
    """Whether a path leads up."""
    if ".." in target.split("/"):
        yield bad_value(path, target, "must not contain '..'")
