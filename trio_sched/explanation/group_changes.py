"""Changes of pod groups, and of the pods in them, that let the group be scheduled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from trio_sched.engine.group_forest import AnyGroup
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.plugin_api.clauses import Change, Edit

KIND: Final = "PodGroup"
COMPOSITE: Final = "CompositePodGroup"


def recreate_group(group: AnyGroup, apply: Callable[[Any], Any]) -> Edit:
    """The edit that deletes *group* and creates it as *apply* gives it."""
    kind = COMPOSITE if isinstance(group, CompositePodGroup) else KIND
    return Edit(kind=kind, name=group.name, namespace=group.namespace, apply=apply, recreate=True)


def without_topology(group: Any) -> Any:
    """*group* whose pods may be anywhere."""
    return structs.replace(group, spec=structs.replace(group.spec, scheduling_constraints=None))


def smaller_tree(group: CompositePodGroup, count: int) -> Change:
    """*group* of which fewer child groups have to fit."""
    edit = recreate_group(group, lambda one: one.with_min_group_count(count))
    return Change(title=f"recreate the composite group {group.name} with minGroupCount {count}", edits=(edit,))


def without_gates(pod: Pod) -> Pod:
    """*pod* without its scheduling gates."""
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduling_gates=None))
