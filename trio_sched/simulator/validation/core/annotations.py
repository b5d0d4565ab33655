"""Rules of the annotations that the API server itself reads; all others may have any value.

Source: ``ValidatePodSpecificAnnotations``, ``ValidateNodeSpecificAnnotations`` and what compares annotations with
fields, in Kubernetes' pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.containers import placed_containers
from trio_sched.simulator.validation.core.taints import taint_problems, toleration_problems
from trio_sched.simulator.validation.core.volumes import descending_path_problems
from trio_sched.simulator.validation.meta.decoding import decode
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, forbidden_field, required
from trio_sched.simulator.validation.meta.shapes import fields_of

MIRROR: Final = "kubernetes.io/config.mirror"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
_TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
_AVOIDED_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
POD_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Before the name of a container, as the one of seccomp."""
_LOCALHOST: Final = "localhost/"
_SECCOMP_PROFILES: Final[Mapping[str, tuple[str, ...]]] = {
    "Unconfined": ("unconfined",),
    "RuntimeDefault": ("runtime/default", "docker/default"),
}
"""The ``type`` of a profile, and how annotations say it."""
_APP_ARMOR_PROFILES: Final[Mapping[str, tuple[str, ...]]] = {
    "Unconfined": ("unconfined",),
    "RuntimeDefault": ("runtime/default",),
}
_COST: Final = re.compile(r"0|[1-9][0-9]{0,9}|-0*[0-9]{1,10}")


def deletion_cost(annotations: Json) -> int | None:
    """What a pod's deletion costs, 0 if nothing is said of it; None if that is no integer of 32 bits."""
    text = annotations.get(_DELETION_COST, "0")
    if not _COST.fullmatch(text):
        return None
    cost = int(text.lstrip("-0") or 0) * (-1 if text.startswith("-") else 1)
    return cost if -(1 << 31) <= cost < 1 << 31 else None


def pod_annotation_problems(annotations: Json, spec: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the annotations of a pod, or of a template of pods.

    Args:
        annotations: the annotations.
        spec: the spec beside them.
        path: where the annotations are.
    """
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield bad_value(f"{path}[{MIRROR}]", annotations[MIRROR], detail)
    if annotations.get(_TOLERATIONS):
        tolerations = _items(annotations[_TOLERATIONS], "core.v1.Toleration")
        if tolerations is None:
            yield bad_value(path, _TOLERATIONS, "must be a list of tolerations in JSON")
        yield from toleration_problems(tolerations or [], f"{path}.{_TOLERATIONS}")
    if deletion_cost(annotations) is None:
        yield bad_value(f"{path}[{_DELETION_COST}]", annotations[_DELETION_COST], "must be a 32bit integer")
    names = {one.get("name") for one, _ in placed_containers(spec, "")}
    for key, value in annotations.items():
        if key == POD_SECCOMP or key.startswith(SECCOMP):
            yield from _seccomp_problems(value, f"{path}.{key}")
        elif key.startswith(APP_ARMOR):
            where, container = f"{path}[{key}]", key.removeprefix(APP_ARMOR)
            if container not in names:
                yield bad_value(where, container, "container not found")
            if value and _type_of(value, _APP_ARMOR_PROFILES) is None:
                yield bad_value(where, value, f'invalid AppArmor profile name: "{value}"')


def _seccomp_problems(profile: str, path: str) -> Iterator[FieldProblem]:
    if profile.startswith(_LOCALHOST):
        yield from descending_path_problems(profile.removeprefix(_LOCALHOST), path)
    elif _type_of(profile, _SECCOMP_PROFILES) is None:
        yield bad_value(path, profile, "must be a valid seccomp profile")


def profile_mismatches(annotations: Json, spec: Json, path: str, *, is_pod: bool) -> Iterator[FieldProblem]:
    """Which security profiles of a new pod, or of a template, are not those that its annotations name.

    Args:
        annotations: the annotations.
        spec: the spec beside them.
        path: where the spec is.
        is_pod: whether it is a pod, whose annotations become fields where containers have none of their own.
    """
    of_pod = spec.get("securityContext") or {}
    where = f"{path}.securityContext.seccompProfile"
    yield from _mismatches(annotations.get(POD_SECCOMP), of_pod.get("seccompProfile"), where, _SECCOMP_PROFILES)
    is_windows = (spec.get("os") or {}).get("name") == "windows"
    for container, place in placed_containers(spec, path):
        name, own = container.get("name"), container.get("securityContext") or {}
        where, said = f"{place}.securityContext.seccompProfile", annotations.get(f"{SECCOMP}{name}")
        yield from _mismatches(said, own.get("seccompProfile"), where, _SECCOMP_PROFILES)
        where, said = f"{place}.securityContext.appArmorProfile", annotations.get(f"{APP_ARMOR}{name}")
        if said is None or is_windows:
            continue
        becomes_field = is_pod and _type_of(said, _APP_ARMOR_PROFILES) is not None
        profile = own.get("appArmorProfile") or (None if becomes_field else of_pod.get("appArmorProfile"))
        yield from _mismatches(said, profile, where, _APP_ARMOR_PROFILES)


def _mismatches(
    said: str | None, profile: Json | None, path: str, known: Mapping[str, tuple[str, ...]]
) -> Iterator[FieldProblem]:
    """Whether an annotation and a *profile* differ that are both there."""
    if said is None or profile is None:
        return
    name = "apparmor" if known is _APP_ARMOR_PROFILES else "seccomp"
    type_ = profile.get("type")
    if type_ != _type_of(said, known):
        if type_ == "Localhost" or type_ in known:
            yield forbidden_field(f"{path}.type", f"{name} type in annotation and field must match")
    elif type_ == "Localhost" and said.removeprefix(_LOCALHOST) != profile.get("localhostProfile"):
        detail = f"{name} profile in annotation and field must match"
        yield forbidden_field(f"{path}.localhostProfile", detail)


def _type_of(said: str, known: Mapping[str, tuple[str, ...]]) -> str | None:
    """The ``type`` of the profile that an annotation names; None: no such profile."""
    if said.startswith(_LOCALHOST):
        return "Localhost"
    return next((type_ for type_, names in known.items() if said in names), None)


def app_armor_profile(annotation: str) -> Json | None:
    """The profile, as a field has it, that the annotation of a container names; None: it names none."""
    type_ = _type_of(annotation, _APP_ARMOR_PROFILES)
    if type_ is None or type_ != "Localhost":
        return None if type_ is None else {"type": type_}
    local = annotation.removeprefix(_LOCALHOST)
    return {"type": type_, "localhostProfile": local} if local.strip() == local != "" else None


def pod_annotation_changes(before: Json, after: Json) -> Iterator[FieldProblem]:
    """Which annotations of a pod changed that must stay as they are."""
    for key in sorted(before.keys() | after.keys()):
        is_mirror = key == MIRROR
        if before.get(key) == after.get(key) or not (is_mirror or key.startswith(APP_ARMOR)):
            continue
        verb = "remove or update" if key in before else "add"
        what = "mirror pod annotation" if is_mirror else "AppArmor annotations"
        yield forbidden_field(f"metadata.annotations[{key}]", f"may not {verb} {what}")


def node_annotation_problems(annotations: Json) -> Iterator[FieldProblem]:
    """What is wrong with the annotations of a node."""
    path = "metadata.annotations"
    if text := annotations.get(_TAINTS):
        taints = _items(text, "core.v1.Taint")
        if taints is None:
            yield bad_value(path, _TAINTS, "must be a list of taints in JSON")
        yield from taint_problems(taints or [], f"{path}.{_TAINTS}")
    if text := annotations.get(_AVOIDED_PODS):
        yield from _avoided_pod_problems(text, path)


def _avoided_pod_problems(text: str, path: str) -> Iterator[FieldProblem]:
    decoded = _from_json(text)
    entries = (decoded.get("preferAvoidPods") or []) if isinstance(decoded, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict | None) for entry in entries):
        yield bad_value(f"{path}.AvoidPods", _AVOIDED_PODS, 'must be JSON like {"preferAvoidPods": [...]}')
        return
    for index, entry in enumerate(entries):
        where, signature = f"{path}.{_AVOIDED_PODS}[{index}].PodSignature", (entry or {}).get("podSignature")
        controller = signature.get("podController") if isinstance(signature, dict) else None
        if controller is None:
            yield required(where)
        elif not isinstance(controller, dict) or controller.get("controller") is not True:
            yield bad_value(f"{where}.PodController.Controller", False, "must point to a controller")


def _items(text: str, message: str) -> list[Json] | None:
    """The list that *text* is, in JSON, of objects of *message*; None: it is nothing of the kind.

    As Go's decoder takes them: unknown fields are passed over, and upper and lower case are the same.
    """
    decoded = _from_json(text)
    if not isinstance(decoded, list):
        return [] if decoded is None else None
    spelt = {name.lower(): name for name in fields_of(message)}
    items: list[Json] = []
    for item in decoded:
        if not isinstance(item, dict | None):
            return None
        fields = {spelt.get(str(name).lower(), str(name)): value for name, value in (item or {}).items()}
        read = decode(fields, message)
        if read.wrong:
            return None
        items.append(read.fields)
    return items


def _from_json(text: str) -> object:
    """What *text* is, in JSON; False for what is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False
