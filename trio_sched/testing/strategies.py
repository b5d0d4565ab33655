"""Hypothesis strategies for nodes, pods and whole clusters.

They use a few labels, taints and images, so that selectors match, taints are tolerated and images are present often
enough::

    @given(clusters(max_nodes=8), pods())
    def test_no_decision_overcommits_a_node(cluster: Cluster, new_pod: Pod) -> None: ...

Hypothesis is not installed with trio-sched; put it among the development dependencies of your plugin.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen
from msgspec import structs

from trio_sched.objects.affinity import Affinity
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing.builders import node, node_affinity, pod, term

try:
    from hypothesis import strategies as st
except ImportError as exc:  # pragma: no cover  # a development dependency, of plugins too
    raise ImportError("trio_sched.testing.strategies needs Hypothesis: pip install hypothesis") from exc

_ZONES = ("a", "b", "c")
_ZONE = "topology.kubernetes.io/zone"
_TAINTS = ("dedicated=batch:NoSchedule", "gpu:NoExecute", "slow:PreferNoSchedule", "old=yes:PreferNoSchedule")
_IMAGES = {"registry.test/app:1": 300 << 20, "registry.test/model:7": 4 << 30, "registry.test/tool:2": 30 << 20}


@frozen(kw_only=True)
class Cluster:
    """Nodes and the pods that run on them."""

    nodes: tuple[Node, ...]
    running: tuple[Pod, ...] = ()


def labels() -> st.SearchStrategy[dict[str, str]]:
    """Labels of a pod."""
    return st.fixed_dictionaries({}, optional={"app": st.sampled_from(("web", "db")), "track": st.just("canary")})


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
        taints=st.lists(st.sampled_from(_TAINTS), max_size=2, unique=True),
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
        tolerations=st.lists(
            st.sampled_from(("dedicated", "gpu", "slow:PreferNoSchedule", "")), max_size=2, unique=True
        ),
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
