"""Changes checked manifests before they are stored: counts of templates, other schedulers, pods to be placed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from attrs import define, field

from trio_sched.documents.errors import shortened
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.simulator.manifests import Manifest, ManifestError, ManifestProblem

Json = dict[str, Any]

COUNT: Final = "trio-sched.dev/count"
"""Annotation of a node or pod: how many of it there are."""
MOST_COPIES: Final = 100_000
"""Of one template; and five times as many of all."""
MIRROR: Final = "kubernetes.io/config.mirror"
ALL: Final = "all"
PENDING: Final = "pending"
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_LONGEST_NAME: Final = 253
_CLAIM_KIND: Final = "ResourceClaim"
_OF_ONE_OBJECT: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_OF_ONE_NODE: Final = ("providerID", "podCIDR", "podCIDRs", "externalID")
_STATUS_OF_ONE_NODE: Final = ("addresses", "volumesAttached", "volumesInUse")


class NothingSelected(TrioSchedError):
    """An option that selects pods selects none."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


@define(eq=False)
class Rescheduled:
    """What `reschedule` did."""

    moved: int = 0
    """How many pods had a node and have none now."""
    stayed: Counter[str] = field(factory=Counter)
    """Why selected pods keep their nodes → how many."""


def multiply(manifests: Iterable[Manifest]) -> list[Manifest]:
    """*manifests*, those with the annotation `COUNT` so many times, with ``-1``, ``-2`` and so on after their names.

    Copies of an object from a dump are new objects, and copies of a node have host names of their own.

    Raises:
        ManifestError: counts that are none, and names that exist already.
    """
    given = list(manifests)
    problems: list[ManifestProblem] = []
    counts: list[int | None] = []
    total = 0
    for manifest in given:
        count = _count(manifest, problems)
        if count is not None and (total := total + count) > 5 * MOST_COPIES:
            text = f"all templates together make more than {5 * MOST_COPIES} objects"
            raise ManifestError([manifest.problem(text, _annotation_path(COUNT))])
        counts.append(count)
    if all(count is None for count in counts):
        if problems:
            raise ManifestError(problems)
        return given
    known = {_key(one) for one, count in zip(given, counts, strict=True) if count is None}
    made: list[Manifest] = []
    for manifest, count in zip(given, counts, strict=True):
        if count is None:
            made.append(manifest)
            continue
        for copy in _copies(manifest, count):
            key, name = _key(copy), copy.fields["metadata"].get("name") or ""
            if len(name) > _LONGEST_NAME:
                problems.append(manifest.problem(f"is too long for {count} objects of this name", "metadata.name"))
                break
            if name and key in known:
                problems.append(manifest.problem(f"makes {name}, which exists already", _annotation_path(COUNT)))
                break
            known.add(key)
            made.append(copy)
    if problems:
        raise ManifestError(problems)
    return made


def take_over(manifests: Iterable[Manifest], names: Collection[str], schedulers: Sequence[str]) -> None:
    """Give pods, and the templates of workloads, to the first of *schedulers*.

    Args:
        manifests: are changed.
        names: the names of the schedulers whose pods are taken; `ALL` stands for those that are not simulated.
        schedulers: the names of those that are simulated.

    Raises:
        NothingSelected: one of *names* is that of no pod's scheduler.
    """
    found: set[str] = set()
    for manifest in manifests:
        path = _path_of_pod_spec(manifest.fields)
        spec = _at(manifest.fields, path)
        if not path or spec is None:
            continue
        name = spec.get("schedulerName") or _DEFAULT_SCHEDULER
        found.add(name)
        if name in names or (ALL in names and name not in schedulers):
            _set_scheduler(manifest.fields, path, schedulers[0])
    for name in names:
        if name != ALL and name not in found:
            near = nearest_name(name, found)
            known = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(found)) or 'no pods at all'}"
            raise NothingSelected(f"no pod has the scheduler {shortened(repr(name))}", known)


def pods_of_other_schedulers(manifests: Iterable[Manifest], schedulers: Collection[str]) -> Counter[str]:
    """Scheduler → its pods without a node, of those schedulers that are not simulated; without finished pods."""
    waiting = (one.fields for one in manifests if _is_pod(one) and not _node(one.fields) and not _is_over(one.fields))
    names = (fields["spec"].get("schedulerName") or _DEFAULT_SCHEDULER for fields in waiting)
    return Counter(name for name in names if name not in schedulers)


def reschedule(manifests: Sequence[Manifest], patterns: Collection[str], schedulers: Collection[str]) -> Rescheduled:
    """Take node and status from pods, so that they are placed anew; their resource claims are released.

    Pods keep their uids, because volumes and claims name them. Pods that no scheduler places again stay: finished and
    terminating ones, mirror pods, those of DaemonSets and of schedulers that are not simulated.

    Args:
        manifests: are changed.
        patterns: ``NAMESPACE/NAME`` with ``*``, ``?`` and ``[…]``; `ALL`, or `PENDING` for pods without a node.
        schedulers: the names of those that are simulated.

    Raises:
        NothingSelected: one of *patterns* selects no pod.
    """
    done = Rescheduled()
    unused = {pattern for pattern in patterns if pattern not in (ALL, PENDING)}
    moved: set[str] = set()
    for manifest in manifests:
        if not _is_pod(manifest):
            continue
        fields = manifest.fields
        key = f"{fields['metadata'].get('namespace') or 'default'}/{fields['metadata'].get('name') or ''}"
        matching = [one for one in patterns if _selects(one, key, has_node=bool(_node(fields)))]
        unused.difference_update(matching)
        if not matching:
            continue
        why = _why_it_stays(fields, schedulers)
        if why:
            done.stayed[why] += bool(_node(fields))
            continue
        done.moved += bool(_node(fields))
        moved.add(fields["metadata"].get("uid") or "")
        _forget_placement(fields)
    if unused:
        raise NothingSelected(f"no pod matches {', '.join(map(repr, sorted(unused)))}", "write NAMESPACE/NAME")
    for manifest in manifests:
        if manifest.fields["kind"] == _CLAIM_KIND:
            _release(manifest.fields, moved - {""})
    done.stayed = +done.stayed
    return done


def _selects(pattern: str, key: str, *, has_node: bool) -> bool:
    if pattern == ALL:
        return True
    return not has_node if pattern == PENDING else fnmatchcase(key, pattern)


def _why_it_stays(fields: Json, schedulers: Collection[str]) -> str:
    metadata = fields["metadata"]
    if _is_over(fields):
        return "finished"
    if "deletionTimestamp" in metadata:
        return "being deleted"
    if MIRROR in (metadata.get("annotations") or {}):
        return "mirror pods"
    if any(one.get("kind") == "DaemonSet" and one.get("controller") for one in metadata.get("ownerReferences") or ()):
        return "of DaemonSets"
    if (fields["spec"].get("schedulerName") or _DEFAULT_SCHEDULER) not in schedulers:
        return "of schedulers that are not simulated"
    return ""


def _forget_placement(fields: Json) -> None:
    # Equal parts may be shared with other manifests, so they are replaced and not changed.
    fields["spec"] = {name: value for name, value in fields["spec"].items() if name != "nodeName"}
    status = fields.get("status") or {}
    # The names of claims that were made for it; without them they would be made twice.
    kept = {name: status[name] for name in ("qosClass", "resourceClaimStatuses") if name in status}
    conditions = [one for one in status.get("conditions") or () if one.get("reason") == "SchedulingGated"]
    if conditions:  # of the API server, at its creation
        kept["conditions"] = conditions
    fields["status"] = {"phase": "Pending", **kept}


def _release(claim: Json, uids: Collection[str]) -> None:
    """Take the pods *uids* from those that *claim* is reserved for; without any left it is not allocated either."""
    status = claim.get("status") or {}
    reserved = status.get("reservedFor") or []
    left = [one for one in reserved if one.get("uid") not in uids]
    if len(left) == len(reserved):
        return
    dropped = ("reservedFor",) if left else ("reservedFor", "allocation", "devices")
    kept = {name: value for name, value in status.items() if name not in dropped}
    claim["status"] = {**kept, "reservedFor": left} if left else kept


def _is_pod(manifest: Manifest) -> bool:
    return (manifest.fields["apiVersion"], manifest.fields["kind"]) == ("v1", "Pod")


def _node(fields: Json) -> str:
    name: str = fields["spec"].get("nodeName") or ""
    return name


def _is_over(fields: Json) -> bool:
    phase = (fields.get("status") or {}).get("phase")
    return isinstance(phase, str) and phase in ("Succeeded", "Failed")


def _path_of_pod_spec(fields: Json) -> tuple[str, ...]:
    """Where the spec of a pod is, or of the pods that a workload makes; empty for other kinds."""
    kind, group = fields["kind"], fields["apiVersion"].rpartition("/")[0]
    if (kind, group) == ("Pod", ""):
        return ("spec",)
    if group not in ("", "apps", "batch"):
        return ()
    return ("spec", "jobTemplate", "spec", "template", "spec") if kind == "CronJob" else ("spec", "template", "spec")


def _at(fields: Json, path: Sequence[str]) -> Json | None:
    """The mapping at *path*, if there is one."""
    found: Any = fields
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _set_scheduler(fields: Json, path: Sequence[str], name: str) -> None:
    """Every mapping on the way is copied: manifests may share equal parts."""
    for step in path:
        fields[step] = {**fields[step]}
        fields = fields[step]
    fields["schedulerName"] = name


def _annotation_path(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _count(manifest: Manifest, problems: list[ManifestProblem]) -> int | None:
    text = (manifest.fields["metadata"].get("annotations") or {}).get(COUNT)
    if text is None:
        return None
    wrong = ""
    if manifest.fields["apiVersion"] != "v1" or manifest.fields["kind"] not in ("Node", "Pod"):
        wrong = "only nodes and pods can have a count"
    elif not (text.isascii() and text.isdecimal()) or len(text) > 9 or not 1 <= int(text) <= MOST_COPIES:
        wrong = f"must be a whole number from 1 to {MOST_COPIES}, not {shortened(repr(text))}"
    if wrong:
        problems.append(manifest.problem(wrong, _annotation_path(COUNT)))
        return None
    return int(text)


def _key(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest.fields["metadata"]
    return manifest.fields["kind"], metadata.get("namespace") or "", metadata.get("name") or ""


def _copies(manifest: Manifest, count: int) -> Iterator[Manifest]:
    encoded, kind = msgspec.json.encode(manifest.fields), manifest.fields["kind"]
    for number in range(1, count + 1):
        fields: Json = msgspec.json.decode(encoded)
        metadata = fields["metadata"]
        del metadata["annotations"][COUNT]
        is_dumped = "uid" in metadata
        for name in _OF_ONE_OBJECT:
            metadata.pop(name, None)
        name = metadata.get("name")
        if name:  # without one it has a generateName, and the server names each
            metadata["name"] = f"{name}-{number}"
        if kind == "Node":
            _renew_node(fields, name or "")
        elif is_dumped:
            for field_name in ("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"):
                metadata.pop(field_name, None)
            fields["spec"].pop("nodeName", None)
            fields.pop("status", None)
        yield Manifest(fields, manifest.source, manifest.document, manifest.items)


def _renew_node(fields: Json, template: str) -> None:
    """What is of one machine only; labels whose value is the name of the node follow it."""
    labels = fields["metadata"].get("labels") or {}
    labels.update({key: fields["metadata"]["name"] for key, value in labels.items() if template and value == template})
    for part, names in ((fields.get("spec"), _OF_ONE_NODE), (fields.get("status"), _STATUS_OF_ONE_NODE)):
        for name in names:
            (part or {}).pop(name, None)
