"""More nodes like those of a pool, as few as are needed, with the pods that its DaemonSets would put there.

Where no number of them helps, because the pod asks for more than such a node has, a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count, islice
from typing import Any, Final

from attrs import evolve
from msgspec import structs

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.explanation.analysis import Analysis
from trio_sched.explanation.owners import controller_of, is_of
from trio_sched.explanation.pod_groups import TooManyDecisions
from trio_sched.explanation.side_effects import placed, rivals_of
from trio_sched.explanation.trial import CannotApply, Trial
from trio_sched.objects.amounts.amount_text import amount_text, quantity_text
from trio_sched.objects.amounts.quantity import NANO, Quantity, parse_nano, to_milli, to_units
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node, NodeStatus
from trio_sched.objects.node_amounts import node_amounts
from trio_sched.objects.node_pools import HOSTNAME_LABEL, pool_of
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import nano_requests
from trio_sched.objects.storage.storage import CSINode
from trio_sched.plugin_api.clauses import Change, Edit, some_names
from trio_sched.snapshot.node_columns import NodeView

_ZONE: Final = "topology.kubernetes.io/zone"
_OF_CONTROLLERS: Final = "node.kubernetes.io/"
_MAX_POOLS: Final = 8
_MAX_SHOWN: Final = 2
_MOST_NODES: Final = 10
"""So many nodes are added at most."""
_PODS: Final = 110
"""The pods that a kubelet runs at most, if nothing else is configured."""
_MOST_SIBLINGS: Final = 100
"""For more pods that are pending together nobody counts nodes."""


def new_nodes(analysis: Analysis, trial: Trial) -> Iterator[Change]:
    """Changes that add nodes, of the most common pools first; where there is no node at all, one that suits the pod."""
    if not len(analysis.nodes):
        yield _only_node(trial)
        return
    pools: dict[Hashable, list[int]] = {}
    for position, node in enumerate(analysis.nodes):
        pools.setdefault(pool_of(node.node), []).append(position)
    common = sorted(pools.items(), key=lambda one: -len(one[1]))[:_MAX_POOLS]
    siblings, helping = _siblings(trial), 0
    for pool, positions in common:
        model = analysis.nodes.node(positions[0])
        change = _fewest(model, pool, trial)
        if change is not None:
            yield from _with_siblings(model, pool, trial, change, siblings if not helping else [])
            helping += 1
            if helping == _MAX_SHOWN:
                return
    if not helping:
        models = [analysis.nodes.node(positions[0]) for _pool, positions in common]
        elsewhere = (_in_new_zone(model, trial) for model in models)
        for change in islice((one for one in elsewhere if one is not None and trial.would_help(one)), 1):
            yield change
            return
        larger = (_larger(model, trial) for model in models)
        yield from islice((one for one in larger if one is not None and trial.would_help(one)), 1)


def nodes_with_labels(analysis: Analysis, trial: Trial) -> Iterator[Change]:
    """A node with the labels that requirements ask for and that no node has, as those of the zone of a volume."""
    wanted = {key: value for one in analysis.clauses for key, value in one.clause.node_labels.items()}
    if not wanted or any(wanted.items() <= node.labels.items() for node in analysis.nodes):
        return
    models = {pool_of(node.node): node for node in analysis.nodes}.values()
    changes = (_with_labels(model, trial, wanted) for model in islice(models, _MAX_POOLS))
    yield from islice(filter(trial.would_help, changes), 1)


def _with_siblings(
    model: NodeView, pool: Hashable, trial: Trial, one: Change, siblings: Sequence[Pod]
) -> Iterator[Change]:
    """The addition of *one* node, and that with which all of *siblings* run, if there are some and it is found.

    Where other pending pods could take the place first, also that with which these run as well.
    """
    for_all = _for_all(model, pool, trial, siblings) if 1 < len(siblings) <= _MOST_SIBLINGS else None
    note = f"then all {len(siblings)} pods run that are pending like this one"
    if for_all is None:
        yield one
    elif for_all.title == one.title:
        yield evolve(one, note=note)
    else:
        yield one
        yield evolve(for_all, note=note)
    rivals = _rivals(trial, one, siblings) if siblings else []
    with_rivals = _for_all(model, pool, trial, [*rivals, *siblings]) if rivals else None
    if with_rivals is not None and with_rivals.title not in (one.title, for_all.title if for_all else ""):
        verb = "runs" if len(rivals) == 1 else "run"
        yield evolve(with_rivals, note=f"then {some_names([other.key for other in rivals])} {verb} as well")


def _rivals(trial: Trial, one: Change, siblings: Sequence[Pod]) -> list[Pod]:
    """The pending pods but *siblings* that could take the place first that *one* addition gives."""
    if trial.group.is_scheduled:
        return []
    uids = {sibling.uid for sibling in siblings}
    try:
        with trial.made(one) as edited:
            node_name = trial.decide_made(edited).node_name
            there = rivals_of(trial, trial.pod, node_name) if node_name else []
            return [other for other in there if other.uid not in uids]
    except (CannotApply, TooManyDecisions):
        return []


def _fewest(model: NodeView, pool: Hashable, trial: Trial) -> Change | None:
    """The smallest addition that helps: of one node, or of several for a pod that waits for others of its group."""
    one = _addition(model, pool, trial, 1)
    if trial.would_help(one):
        return one
    return _smallest(model, pool, trial, trial.would_help) if trial.group.is_all_or_nothing else None


def _only_node(trial: Trial) -> Change:
    """A node with what the pod requests, and with the labels that it selects."""
    pod = trial.pod
    wanted = {name: nano for name, nano in nano_requests(pod, trial.scheduler.cache.options).items() if nano > 0}
    amounts = {name: to_milli(nano) if name == "cpu" else to_units(nano) for name, nano in wanted.items()}
    offered: dict[str, Quantity] = {name: quantity_text(name, amount) for name, amount in amounts.items()}
    offered["pods"] = _PODS
    selected = pod.spec.node_selector or {}
    made = Node(
        metadata=ObjectMeta(name="node-1", uid="node-1", labels={HOSTNAME_LABEL: "node-1", **selected}),
        status=NodeStatus(allocatable=offered, capacity=offered),
    )
    what = " and ".join(f"{name} {amount_text(name, amount, round_up=True)}" for name, amount in amounts.items())
    labelled = [f"{key}={value}" for key, value in selected.items()]
    title = f"a node with {what}" if what else "a node"
    title += f" and the label{'s' if len(labelled) > 1 else ''} {', '.join(labelled)}" if labelled else ""
    return Change(title=title, edits=(Edit(kind="Node", name="node-1", apply=lambda _none: made),))


def _in_new_zone(model: NodeView, trial: Trial) -> Change | None:
    """A node like *model* in a zone where there is none; None if the nodes have no zones."""
    if _ZONE not in model.labels:
        return None
    zone = f"{next(_free_names(model.name, trial))}-zone"
    return evolve(
        _with_labels(model, trial, {_ZONE: zone}), title=f"one more node like {model.name}, in another {_ZONE}"
    )


def _with_labels(model: NodeView, trial: Trial, wanted: Mapping[str, str]) -> Change:
    """A node like *model* with other labels."""
    free = next(_free_names(model.name, trial))

    def made(_none: Any) -> Node:
        copy = _copy(model.node, free)
        return structs.replace(copy, metadata=structs.replace(copy.metadata, labels={**copy.labels, **wanted}))

    _first, *others = _copies(model, free, trial)
    text = ", ".join(f"{key}={value}" for key, value in wanted.items())
    edits = (Edit(kind="Node", name=free, apply=made), *others)
    return Change(title=f"one more node like {model.name}, with {text}", edits=edits)


def _larger(model: NodeView, trial: Trial) -> Change | None:
    """A node like *model* with room for the pod besides those of DaemonSets; None if such a node would have it."""
    options = trial.scheduler.cache.options
    wanted = dict(nano_requests(trial.pod, options))
    wanted["pods"] = NANO
    for pod in filter(_is_of_daemon_set, model.pods):
        wanted["pods"] += NANO
        for name, nano in nano_requests(pod, options).items():
            if name in wanted:
                wanted[name] += nano
    given = {name: parse_nano(amount) for name, amount in (model.node.status.allocatable or {}).items()}
    short = {
        name: to_milli(nano) if name == "cpu" else to_units(nano)
        for name, nano in wanted.items()
        if nano > given.get(name, 0) and (given.get(name) or "/" not in name)
    }
    if not short:
        return None
    more = {name: quantity_text(name, amount) for name, amount in short.items()}
    free = next(_free_names(model.name, trial))

    def larger(_none: Any) -> Node:
        made = _copy(model.node, free)
        status = structs.replace(
            made.status,
            allocatable={**(made.status.allocatable or {}), **more},
            capacity={**(made.status.capacity or {}), **more},
        )
        return structs.replace(made, status=status)

    _first, *others = _copies(model, free, trial)
    what = " and ".join(f"{name} {amount_text(name, amount, round_up=True)}" for name, amount in short.items())
    edits = (Edit(kind="Node", name=free, apply=larger), *others)
    return Change(title=f"a larger node like {model.name}, with {what}", edits=edits)


def _is_of_daemon_set(pod: Pod) -> bool:
    return any(one.kind == "DaemonSet" and one.controller for one in pod.metadata.owner_references or ())


def _for_all(model: NodeView, pool: Hashable, trial: Trial, pods: Sequence[Pod]) -> Change | None:
    """The smallest addition with which all of *pods* run."""
    return _smallest(model, pool, trial, lambda change: _all_run(change, trial, pods))


def _smallest(model: NodeView, pool: Hashable, trial: Trial, helps: Callable[[Change], bool]) -> Change | None:
    """The smallest addition of at most `_MOST_NODES` nodes that helps; None if that is not enough."""
    too_few, enough, found = 0, _MOST_NODES + 1, None
    number = _MOST_NODES  # first, because then there is nothing to search for where it does not help
    while enough - too_few > 1:
        change = _addition(model, pool, trial, number)
        if helps(change):
            enough, found = number, change
        elif number == _MOST_NODES:
            return None
        else:
            too_few = number
        number = (too_few + enough) // 2
    return found


def _all_run(change: Change, trial: Trial, pods: Sequence[Pod]) -> bool:
    try:
        with trial.made(change), ExitStack() as stack:
            for pod in pods:
                decision = trial.scheduler.try_pod(pod)
                if not isinstance(decision, ScheduleResult):
                    return False
                stack.enter_context(placed(trial, pod, decision.node_name))
    except CannotApply:
        return False
    return True


def _siblings(trial: Trial) -> list[Pod]:
    """The pod and the pending pods that its controller has made, too, or that are of its group."""
    pod, owner = trial.pod, controller_of(trial.pod)
    if owner is None and not pod.group_key:
        return [pod]
    others = [
        one
        for one in trial.scheduler.cache.unassigned.pods()
        if one.uid != pod.uid
        and one.scheduler_name == pod.scheduler_name
        and (is_of(owner, one) or (pod.group_key and one.group_key == pod.group_key))
    ]
    return [pod, *others]


def _addition(model: NodeView, pool: Hashable, trial: Trial, number: int) -> Change:
    amounts, _pods = node_amounts(model.node)
    size = f"{amount_text('cpu', amounts.cpu_milli)} CPU, {amount_text('memory', amounts.memory_bytes)}"
    like = f"pool {pool}" if isinstance(pool, str) else model.name
    edits = [edit for name in islice(_free_names(model.name, trial), number) for edit in _copies(model, name, trial)]
    what = "one more node" if number == 1 else f"{number} more nodes"
    return Change(title=f"{what} like {like} ({size}{' each' if number > 1 else ''})", edits=tuple(edits))


def _copies(model: NodeView, name: str, trial: Trial) -> Iterator[Edit]:
    """A node called *name* like *model*, and what comes with it."""
    yield Edit(kind="Node", name=name, apply=lambda _none: _copy(model.node, name))
    for pod in model.pods:
        if _is_of_daemon_set(pod):
            yield _copied_pod(pod, name)
    known = trial.scheduler.object_cache
    csi_node: CSINode | None = known.get("CSINode", model.name) if "CSINode" in known.kinds else None
    if csi_node is not None:
        yield Edit(kind="CSINode", name=name, apply=lambda _none: _renamed(csi_node, name))


def _free_names(name: str, trial: Trial) -> Iterator[str]:
    names = (f"{name}-new-{number}" for number in count(1))
    return (one for one in names if one not in trial.scheduler.cache.table.row_of)


def _copy(model: Node, name: str) -> Node:
    labels = {key: name if value == model.name else value for key, value in model.labels.items()}
    taints = tuple(one for one in model.spec.taints or () if not one.key.startswith(_OF_CONTROLLERS)) or None
    metadata = structs.replace(model.metadata, name=name, uid=name, labels=labels)
    spec = structs.replace(model.spec, unschedulable=False, taints=taints)
    return structs.replace(model, metadata=metadata, spec=spec)


def _renamed(one: Any, name: str) -> Any:
    return structs.replace(one, metadata=structs.replace(one.metadata, name=name, uid=name))


def _copied_pod(pod: Pod, node_name: str) -> Edit:
    name = f"{pod.name}-of-{node_name}"

    def made(_none: Any) -> Pod:
        spec = structs.replace(pod.spec, node_name=node_name)
        return structs.replace(pod, metadata=structs.replace(pod.metadata, name=name, uid=name), spec=spec)

    return Edit(kind="Pod", name=name, namespace=pod.namespace, apply=made)
