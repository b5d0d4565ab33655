"""Hypothesis strategies for nodes, pods, whole clusters and what happens in them, and for arguments of plugins.

They use a few labels, taints and images, so that selectors match, taints are tolerated and images are present often
enough::

    @given(clusters(max_nodes=8), pods())
    def test_no_decision_overcommits_a_node(cluster: Cluster, new_pod: Pod) -> None: ...


    @given(histories())
    async def test_it_survives_everything(history: History) -> None:
        async with virtual_cluster(nodes=history.start.nodes, plugins=[MyPlugin]) as cluster:
            for change in history.changes:
                await cluster.apply(change)
            await cluster.settle()

Hypothesis is not installed with trio-sched itself, but with ``trio-sched[testing]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_origin

import attrs
from attrs import frozen
from msgspec import structs

from trio_sched.objects.affinity import Affinity
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.taint import Taint, Toleration
from trio_sched.testing.builders import node, node_affinity, pod, taint, term, toleration
from trio_sched.testing.manifests import ObjectChange

try:
    from hypothesis import reject
    from hypothesis import strategies as st
except ImportError as exc:  # pragma: no cover  # a development dependency, of plugins too
    raise ImportError("trio_sched.testing.strategies needs Hypothesis: pip install trio-sched[testing]") from exc

__all__ = [
    "Cluster",
    "History",
    "affinities",
    "arguments",
    "clusters",
    "histories",
    "labels",
    "nodes",
    "pods",
    "taints",
    "tolerations",
]

_ZONES = ("a", "b", "c")
_ZONE = "topology.kubernetes.io/zone"
_TOLERATIONS = ("dedicated", "gpu", "slow:PreferNoSchedule", "")
_TAINTS = ("dedicated=batch:NoSchedule", "gpu:NoExecute", "slow:PreferNoSchedule", "old=yes:PreferNoSchedule")
_IMAGES = {"registry.test/app:1": 300 << 20, "registry.test/model:7": 4 << 30, "registry.test/tool:2": 30 << 20}


@frozen(kw_only=True)
class Cluster:
    """Nodes and the pods that run on them."""

    nodes: tuple[Node, ...]
    running: tuple[Pod, ...] = ()


@frozen(kw_only=True)
class History:
    """A cluster, and what happens in it; `trio_sched.testing.VirtualCluster.apply` makes a change."""

    start: Cluster
    changes: tuple[ObjectChange, ...]


def labels() -> st.SearchStrategy[dict[str, str]]:
    """Labels of a pod."""
    return st.fixed_dictionaries({}, optional={"app": st.sampled_from(("web", "db")), "track": st.just("canary")})


def taints() -> st.SearchStrategy[Taint]:
    """A taint of a node."""
    return st.sampled_from(_TAINTS).map(taint)


def tolerations() -> st.SearchStrategy[Toleration]:
    """A toleration of some of `taints`, or of all of them."""
    return st.sampled_from(_TOLERATIONS).map(toleration)


def affinities() -> st.SearchStrategy[Affinity | None]:
    """Affinity to nodes: none, required, preferred."""
    terms = st.sampled_from(
        [term(f"{_ZONE} In a b"), term("disk NotIn hdd"), term("disk Exists", f"{_ZONE} In c"), term("cores Gt 4")]
    )
    required = st.lists(terms, max_size=2)
    preferred = st.lists(st.tuples(st.integers(1, 100), terms), max_size=2)
    return st.none() | st.builds(lambda r, p: node_affinity(*r, preferred=p), required, preferred)


def nodes(name: str | None = None) -> st.SearchStrategy[Node]:
    """A node, called *name* if that is given."""
    return st.builds(
        node,
        st.sampled_from([f"node-{i}" for i in range(32)]) if name is None else st.just(name),
        cpu=st.sampled_from(("1", "3500m", "8", "64")),
        memory=st.sampled_from(("1Gi", "7800Mi", "256Gi")),
        pods=st.sampled_from((1, 4, 110)),
        allocatable=st.none() | st.fixed_dictionaries({"example.com/gpu": st.integers(0, 8)}),
        labels=st.fixed_dictionaries(
            {},
            optional={
                _ZONE: st.sampled_from(_ZONES),
                "disk": st.sampled_from(("ssd", "hdd")),
                "cores": st.sampled_from(("2", "8", "many")),
            },
        ),
        taints=st.lists(taints(), max_size=2, unique=True),
        unschedulable=st.sampled_from((False, False, False, True)),
        images=st.dictionaries(st.sampled_from(tuple(_IMAGES)), st.integers(1 << 20, 2 << 30), max_size=2),
    )


def pods(name: str | None = None, *, node_name: str = "") -> st.SearchStrategy[Pod]:
    """A pod, called *name* if that is given; with *node_name* it runs there."""
    return _pods(
        st.sampled_from([f"pod-{i}" for i in range(64)]) if name is None else st.just(name), st.just(node_name)
    )


def _pods(names: st.SearchStrategy[str], node_names: st.SearchStrategy[str]) -> st.SearchStrategy[Pod]:
    return st.builds(
        pod,
        names,
        node_name=node_names,
        cpu=st.sampled_from((None, "0", "50m", "1", "2500m")),
        memory=st.sampled_from((None, "64Mi", "1.5Gi", "6Gi")),
        requests=st.none() | st.fixed_dictionaries({"example.com/gpu": st.integers(1, 4)}),
        image=st.sampled_from(tuple(_IMAGES)),
        host_ports=st.lists(st.sampled_from((80, 443)), max_size=1),
        labels=labels(),
        priority=st.sampled_from((None, 0, 1000)),
        node_selector=st.sampled_from((None, None, None, {"disk": "ssd"})),
        affinity=affinities(),
        tolerations=st.lists(tolerations(), max_size=2, unique=True),
    )


@st.composite
def clusters(draw: Any, *, min_nodes: int = 0, max_nodes: int = 8, max_running: int = 12) -> Cluster:
    """A cluster; running pods may request more than is allocatable, as on real clusters."""
    count = draw(st.integers(min_nodes, max_nodes))
    members = tuple(draw(nodes(f"node-{i}")) for i in range(count))
    if not members:
        return Cluster(nodes=members)
    places = st.sampled_from([member.name for member in members])
    running = draw(st.lists(_pods(st.just("running"), places), max_size=max_running))
    named = [_renamed(each, f"running-{i}") for i, each in enumerate(running)]
    return Cluster(nodes=members, running=tuple(named))


def _renamed(each: Pod, name: str) -> Pod:
    metadata = structs.replace(each.metadata, name=name, uid=f"uid-of-default/{name}")
    return structs.replace(each, metadata=metadata)


@st.composite
def histories(draw: Any, *, min_nodes: int = 1, max_nodes: int = 4, max_changes: int = 12) -> History:
    """What happens in a cluster, step by step: nodes and pods are added, changed and deleted.

    A cluster begins without pods; those that are added are pending, to be scheduled. Nodes change their labels, taints,
    cordon and allocatable amounts, pods their labels.
    """
    start = draw(clusters(min_nodes=min_nodes, max_nodes=max_nodes, max_running=0))
    present: dict[tuple[type[Any], str], Any] = {(Node, one.name): one for one in start.nodes}
    changes: list[ObjectChange] = []
    for number in range(draw(st.integers(0, max_changes))):
        change = draw(_changes(number, tuple(present.values())))
        changes.append(change)
        subject = change.old if change.new is None else change.new
        key = (type(subject), subject.metadata.name)
        if change.new is None:
            del present[key]
        else:
            present[key] = change.new
    return History(start=start, changes=tuple(changes))


def _changes(number: int, present: tuple[Any, ...]) -> st.SearchStrategy[ObjectChange]:
    added = nodes(f"added-{number}") | pods(f"added-{number}")
    ways = [added.map(lambda new: ObjectChange(None, new))] * 2
    if present:
        some = st.sampled_from(present)
        ways.append(some.map(lambda old: ObjectChange(old, None)))
        ways += [some.flatmap(lambda old: _versions(old).map(lambda new: ObjectChange(old, new)))] * 2
    return st.one_of(ways)


def _versions(old: Any) -> st.SearchStrategy[Any]:
    """Other versions of a node or a pod, with what an API server lets change."""
    if isinstance(old, Pod):
        return labels().map(
            lambda new: structs.replace(old, metadata=structs.replace(old.metadata, labels=new or None))
        )
    return nodes(old.name).map(
        lambda new: structs.replace(
            old, metadata=structs.replace(old.metadata, labels=new.labels), spec=new.spec, status=new.status
        )
    )


@st.composite
def arguments(draw: Any, plugin: type[Any]) -> Any:
    """An instance of the ``Args`` of *plugin*, for ``args=`` of `schedule` and `check_conformance`; None without any.

    Fields have their default or any value of their type that their validators accept.
    """
    wanted = getattr(plugin, "Args", None)
    if wanted is None:
        return None
    return draw(_instances(wanted))


@st.composite
def _instances(draw: Any, wanted: type[Any]) -> Any:
    types = attrs.resolve_types(wanted)
    given: dict[str, Any] = {}
    for one in attrs.fields(types):
        if one.init and (one.default is attrs.NOTHING or draw(st.booleans())):
            given[one.alias or one.name] = draw(_values(one.type))
    try:
        return wanted(**given)
    except (TypeError, ValueError):  # what validators raise
        reject()


def _values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type, of which validators often accept some."""
    if kind is int:
        return st.sampled_from((0, 1, 2, 10, 50, 100)) | st.integers(-1, 1000)
    if kind is float:
        return st.sampled_from((0.0, 0.5, 1.0, 10.0)) | st.floats(0, 1000, allow_nan=False)
    if kind is str:
        return st.sampled_from(("a", "b", "cpu", "example.com/gpu", ""))
    if isinstance(kind, type) and attrs.has(kind):
        return _instances(kind)
    origin: Any = get_origin(kind)
    parts: tuple[Any, ...] = get_args(kind)
    if origin in (tuple, list, frozenset, set) and parts:
        return st.lists(_values(parts[0]), max_size=3, unique_by=repr).map(origin)
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return st.dictionaries(_values(parts[0]), _values(parts[1]), max_size=3)
    return st.from_type(kind)
