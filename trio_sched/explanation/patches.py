"""The difference between two versions of an object as a strategic merge patch.

Objects are known here without the fields that no scheduler reads, so a patch changes what differs and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from msgspec import structs
from msgspec.json import decode, encode

from trio_sched.documents.json_values import Json
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload_groups import reference_to

_MERGE_KEYS: Final = {
    "containers": "name",
    "drivers": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "volumes": "name",
}
"""Lists that a strategic merge patch merges by a key, among those of pods and CSINodes; other lists are replaced."""
_REPLACED: Final = frozenset({"topologySpreadConstraints"})
"""Lists that are merged by a key which several elements can have: these are replaced by a directive."""
_RESIZED: Final = frozenset({"cpu", "memory"})


def patch_of(old: Any, new: Any) -> Json:
    """What makes *new* of *old*, two versions of an object; empty if they are equal."""
    return _difference(_plain(old), _plain(new))


def _plain(one: Any) -> Json:
    plain: Json = decode(encode(_as_written(one) if isinstance(one, Pod) else one))
    return plain


def _as_written(pod: Pod) -> Pod:
    """*pod* as the API server of 1.35 knows it, if it is of a workload."""
    group = pod.spec.scheduling_group
    reference = None if group is None else reference_to(group.pod_group_name or "")
    if reference is None:
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduling_group=None, workload_ref=reference))


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    patch: Json = {}
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in new:
            patch[key] = _removed(key, old[key])
        elif key not in old:
            patch[key] = new[key]
        elif old[key] != new[key]:
            patch[key] = _changed(key, old[key], new[key])
    return patch


def _removed(key: str, old: Any) -> Any:
    if key in _MERGE_KEYS and isinstance(old, list):
        return [_deletion(_MERGE_KEYS[key], one) for one in old]
    return None


def _changed(key: str, old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return _difference(old, new)
    if isinstance(old, list) and isinstance(new, list):
        if key in _REPLACED:
            return [*new, {"$patch": "replace"}]
        if key in _MERGE_KEYS:
            return _merged(_MERGE_KEYS[key], old, new)
    return new


def _merged(name: str, old: Sequence[Json], new: Sequence[Json]) -> list[Json]:
    before = {one.get(name): one for one in old}
    after = {one.get(name): one for one in new}
    found = [_deletion(name, one) for key, one in before.items() if key not in after]
    for key, one in after.items():
        if key not in before:
            found.append(one)
        elif one != before[key]:
            found.append({name: key, **_difference(before[key], one)})
    return found


def _deletion(name: str, one: Json) -> Json:
    return {name: one.get(name), "$patch": "delete"}


# --- pods -----------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class PodPatch:
    """What makes one version of a pending pod of another, by how the API server takes it."""

    whole: Json
    """All of it."""
    mutable: Json
    """Gates that go and tolerations that come, which a pending pod may do."""
    resize: Json
    """CPU and memory of containers, which the subresource ``resize`` takes."""

    @property
    def metadata(self) -> Json:
        """Labels and annotations, which every pod takes."""
        changed: Json = self.whole.get("metadata", {})
        return {key: value for key, value in changed.items() if key in ("labels", "annotations")}

    @property
    def is_in_place(self) -> bool:
        """Whether no new pod is needed."""
        spec, metadata = self.whole.get("spec", {}), self.whole.get("metadata", {})
        in_place = self.mutable.keys() | self.resize.keys() == spec.keys() and self.metadata == metadata
        return in_place and self.whole.keys() <= {"metadata", "spec"}


def pod_patch(old: Pod, new: Pod) -> PodPatch:
    """What makes *new* of *old*."""
    whole = patch_of(old, new)
    spec = whole.get("spec", {})
    mutable: Json = {}
    gates = {one.name for one in old.spec.scheduling_gates or ()}
    if "schedulingGates" in spec and all(one.name in gates for one in new.spec.scheduling_gates or ()):
        mutable["schedulingGates"] = spec["schedulingGates"]
    before = old.spec.tolerations or ()
    if "tolerations" in spec and (new.spec.tolerations or ())[: len(before)] == before:
        mutable["tolerations"] = spec["tolerations"]
    is_resize = all(map(_is_resize, spec.get("containers") or [{}])) and not _has_claims(old)
    resize = {"containers": spec["containers"]} if is_resize else {}
    return PodPatch(whole=whole, mutable=mutable, resize=resize)


def _has_claims(pod: Pod) -> bool:
    """Whether a container uses claims: an API server of 1.36 takes these for changed when such a pod is resized."""
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    return any(one.resources is not None and one.resources.claims for one in containers)


def _is_resize(container: Json) -> bool:
    resources = container.get("resources")
    if container.keys() != {"name", "resources"} or not resources or resources.keys() - {"requests", "limits"}:
        return False
    return all(
        amounts is not None and not amounts.keys() - _RESIZED and None not in amounts.values()
        for amounts in resources.values()
    )
