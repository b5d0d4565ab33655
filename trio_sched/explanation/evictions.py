"""Pods whose deletion would make room, whatever their priority; with disruption budgets, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from attrs import evolve

from trio_sched.explanation.analysis import Analysis
from trio_sched.explanation.owners import controller_of, is_of
from trio_sched.explanation.side_effects import placed, replaced
from trio_sched.explanation.trial import CannotApply, Trial
from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, delete_pod, some_names
from trio_sched.plugin_api.preemption import Victims
from trio_sched.snapshot.node_columns import NodeView

_NODES: Final = 100
"""Nodes on which victims are looked for, those with the fewest pods first."""
_SHOWN: Final = 2
"""Nodes whose victims are tried."""
_MOVES: Final = 5
"""Nodes whose victims are tried to be moved."""
_MOST_VICTIMS: Final = 10


def evictions(analysis: Analysis, trial: Trial) -> Iterator[Change]:
    """Changes that delete pods of one node: those that are ending anyway, then those that move, then others.

    A pod moves if its controller certainly makes another that runs elsewhere.
    """
    ending = trial.victims(_ending, most_nodes=_NODES)
    for _name, victims in sorted(ending.items(), key=_severity)[:1]:
        pods = victims.pods
        title = f"force the deletion of {some_names([pod.key for pod in pods])}"
        held = list(dict.fromkeys(name for pod in pods for name in pod.metadata.finalizers or ()))
        note = "they are ending; without force it takes longer"
        if held:
            title += f" without the finalizers {some_names(held)}"
            note = "they are ending; what has set the finalizers is to remove them, after work of its own"
        yield Change(title=title, edits=tuple(map(delete_pod, pods)), note=note)
    owner = controller_of(trial.pod)
    found = trial.victims(partial(_evictable, owner=owner), most_nodes=_NODES)
    candidates = sorted((one for one in found.items() if 0 < len(one[1].pods) <= _MOST_VICTIMS), key=_severity)
    moved: Victims | None = None
    for name, victims in candidates[:_MOVES]:
        targets = _targets(trial, victims)
        if targets is not None:
            moved = victims
            yield _move(name, victims, targets)
            break
    for _name, victims in candidates[:_SHOWN]:
        if victims is not moved:
            yield _deletion(victims)


def _targets(trial: Trial, victims: Victims) -> list[str] | None:
    """The nodes to which *victims* would move, each of them; None if not all of them certainly would.

    The pods that controllers make in their place may be decided on before the pod in question or after it: both must
    find room either way, and the replacements must not come back.
    """
    try:
        with trial.made(Change(title="", edits=tuple(map(delete_pod, victims.pods)))):
            with replaced(trial, victims.pods) as targets:
                first = trial.now().node_name
            if not first or not all(targets):
                return None
            with placed(trial, trial.pod, first), replaced(trial, victims.pods) as later:
                return [one for one in targets if one] if later == targets else None
    except CannotApply:
        return None


def _move(name: str, victims: Victims, targets: Sequence[str]) -> Change:
    moves = [f"{pod.key} from {name} to {target}" for pod, target in zip(victims.pods, targets, strict=True)]
    return evolve(_deletion(victims), title=f"move {some_names(moves)}")


def _severity(candidate: tuple[str, Victims]) -> tuple[object, ...]:
    """Sorts the mildest first; unlike `Victims.cost` fewer pods come before pods of a lower priority.

    Somebody decides on these deletions, whom the number of pods concerns more than their priorities.
    """
    name, victims = candidate
    violations, highest, _sum, count = victims.cost
    return violations, count, highest, name


def _evictable(node: NodeView, owner: OwnerReference | None) -> list[Pod]:
    """The pods of *node* that somebody could delete: no static pods, none of DaemonSets, none that is ending.

    Nor those of the pod's own *owner*, which makes another in place of each: as many would be pending as before.
    """
    return [pod for pod in node.pods if not _stays(pod) and not is_of(owner, pod)]


def _ending(node: NodeView) -> list[Pod]:
    return [pod for pod in node.pods if pod.metadata.deletion_timestamp is not None]


def _stays(pod: Pod) -> bool:
    metadata = pod.metadata
    return metadata.deletion_timestamp is not None or any(
        one.kind in ("DaemonSet", "Node") for one in metadata.owner_references or () if one.controller
    )


def _deletion(victims: Victims) -> Change:
    pods = victims.pods
    notes = [f"priority {', '.join(str(one) for one in sorted({pod.priority for pod in pods}))}"]
    if victims.pdb_violations:
        notes.append(f"{victims.pdb_violations} protected by a disruption budget")
    title = f"delete {some_names([pod.key for pod in pods])}"
    return Change(title=title, edits=tuple(delete_pod(pod) for pod in pods), note="; ".join(notes))
