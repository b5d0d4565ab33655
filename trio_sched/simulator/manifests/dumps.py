"""Changes checked manifests before they are stored: other schedulers, pods to be placed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.go.text import shortened
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.validation.core.annotations import MIRROR

ALL: Final = "all"
PENDING: Final = "pending"
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_CLAIM_KIND: Final = "ResourceClaim"


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
        path = path_of_pod_spec(manifest.fields)
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
    waiting = (
        one.fields for one in manifests if _is_pod(one) and not _node(one.fields) and not is_finished(one.fields)
    )
    names = (fields["spec"].get("schedulerName") or _DEFAULT_SCHEDULER for fields in waiting)
    return Counter(name for name in names if name not in schedulers)


def reschedule(manifests: Sequence[Manifest], patterns: Collection[str], schedulers: Collection[str]) -> Rescheduled:
    """Take node and status from pods, so that they are placed again; their resource claims are released.

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
    if is_finished(fields):
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


def path_of_pod_spec(fields: Json) -> tuple[str, ...]:
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
