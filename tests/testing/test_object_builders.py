"""Builders of the kinds besides pods and nodes: what the scheduler makes of them, and what an API server does."""

from typing import Any

import msgspec
import pytest

from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.objects.storage.volume import CsiVolumeSource, Volume
from trio_sched.testing import (
    FakeHandle,
    csi_driver,
    csi_node,
    csi_storage_capacity,
    device_taint_rule,
    disruption_budget,
    label_selector,
    metadata,
    namespace,
    node,
    node_affinity,
    owner_reference,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    priority_class,
    replica_set,
    replication_controller,
    schedule,
    service,
    spread_constraint,
    stateful_set,
    storage_class,
    term,
    virtual_cluster,
    volume_attachment,
)

OBJECTS: list[Any] = [
    namespace("team", labels={"tier": "gold"}),
    service("web", {"app": "web"}),
    replication_controller("old", {"app": "old"}),
    replica_set("web", "app=web"),
    stateful_set("db", "app=db, track NotIn test"),
    disruption_budget("db", "app=db", allowed=1),
    priority_class("urgent", 5000, preemption_policy="Never"),
    storage_class("fast", topologies={"zone": ["a", "b"]}),
    persistent_volume("pv", storage_class="fast", on={"zone": "a"}),
    persistent_volume_claim("data", storage_class="fast"),
    csi_node("n", {"csi.test": 3}),
    csi_driver(storage_capacity=True),
    csi_storage_capacity(on="zone=a", storage_class="fast"),
    volume_attachment("n", "pv"),
    device_taint_rule(driver="gpu.example.com"),
]


@pytest.mark.parametrize("built", OBJECTS, ids=lambda built: type(built).__name__)
async def test_an_api_server_stores_it_as_it_is(built: Any, autojump_clock: Any) -> None:
    async with virtual_cluster(scheduler=False, volumes=False) as cluster:
        stored = await cluster.create(built)
        if not isinstance(built, dict):
            for part in built.__struct_fields__:
                if part not in ("metadata", "status"):
                    assert getattr(stored, part) == getattr(built, part)
            assert stored.metadata.name == built.metadata.name


def test_selectors_are_written_as_words() -> None:
    assert label_selector("app=web", "track In a b, gpu Exists") == LabelSelector(
        match_labels={"app": "web"},
        match_expressions=(
            LabelSelectorRequirement("track", "In", ("a", "b")),
            LabelSelectorRequirement("gpu", "Exists"),
        ),
    )
    assert label_selector() == LabelSelector()


@pytest.mark.parametrize("text", ["app", "app In", "app Near web", "app Exists yes"])
def test_a_selector_that_is_none_says_how_it_is_written(text: str) -> None:
    with pytest.raises(ValueError, match=f"key In values…, .* got '{text}'"):
        label_selector(text)


def test_constraints_and_terms_decide() -> None:
    zone = "topology.kubernetes.io/zone"
    nodes = [node(name, labels={zone: name[0]}) for name in ("a1", "a2", "b1")]
    others = [pod("other", labels={"app": "web"}, node_name="a1")]

    def feasible(plugin: str, **wishes: Any) -> tuple[str, ...]:
        waiting = pod("p", labels={"app": "web"}, **wishes)
        return schedule(waiting, on=nodes, pods=others, plugins=[plugin]).feasible

    assert feasible("PodTopologySpread", spread=[spread_constraint(zone, "app=web")]) == ("b1",)
    assert feasible("PodTopologySpread", spread=[spread_constraint(zone, "app=web", hard=False)]) == ("a1", "a2", "b1")
    assert feasible("InterPodAffinity", affinity=pod_affinity(pod_term("app=web", zone))) == ("a1", "a2")
    assert feasible("InterPodAffinity", affinity=pod_anti_affinity(pod_term({"app": "web"}))) == ("a2", "b1")
    both = [pod_affinity(pod_term("app=web", zone)), pod_anti_affinity(pod_term("app=web"))]
    assert feasible("InterPodAffinity", affinity=both) == ("a2",)


def test_affinities_are_combined_unless_they_are_of_one_kind() -> None:
    combined = pod("p", affinity=[node_affinity(term("a Exists")), pod_affinity(pod_term())]).spec.affinity
    assert combined is not None
    assert combined.node_affinity is not None
    assert combined.pod_affinity is not None
    with pytest.raises(ValueError, match="pod_affinity is given twice: put all terms into one pod_affinity"):
        pod("p", affinity=[pod_affinity(pod_term()), pod_affinity(pod_term("app=web"))])


def test_volumes_decide() -> None:
    nodes = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"})]
    handle = FakeHandle(
        known_objects={
            "StorageClass": [storage_class("fast")],
            "PersistentVolume": [persistent_volume("pv", storage_class="fast", on={"zone": "b"}, claim="default/data")],
            "PersistentVolumeClaim": [persistent_volume_claim("data", storage_class="fast", volume="pv")],
        }
    )
    outcome = schedule(pod("db", volumes=["data"]), on=nodes, plugins=["VolumeBinding"], handle=handle)
    assert outcome.feasible == ("b",)
    whole = Volume(name="scratch", csi=CsiVolumeSource(driver="csi.test"))
    assert [one.name for one in pod("db", volumes=["data", whole]).spec.volumes or ()] == ["v0", "scratch"]


def test_owners_have_the_uid_that_builders_give_them() -> None:
    owned = pod("web-1", owner=owner_reference("ReplicaSet", "web"))
    (owner,) = owned.metadata.owner_references or ()
    assert (owner.api_version, owner.uid) == ("apps/v1", replica_set("web").metadata.uid)
    with pytest.raises(ValueError, match="does not know the API version of kind 'Widget': give api_version"):
        owner_reference("Widget", "w")
    assert owner_reference("Widget", "w", api_version="example.com/v1", controller=False).controller is False


def test_metadata_for_kinds_without_a_builder() -> None:
    assert msgspec.to_builtins(metadata("w", "team", labels={"a": "b"})) == {
        "name": "w",
        "namespace": "team",
        "uid": "uid-of-team/w",
        "labels": {"a": "b"},
    }


def test_conditions_of_nodes() -> None:
    assert [(one.type, one.status) for one in node(conditions={"Ready": "False"}).status.conditions or ()] == [
        ("Ready", "False")
    ]
