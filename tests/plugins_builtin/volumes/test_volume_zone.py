from typing import Any

import pytest
from storage import Storage, pod_with

from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Resource
from trio_sched.testing import ask_hint, make_plugin, node, schedule

NAME = "VolumeZone"
REASON = "node(s) had no available volume zone"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ({ZONE: "east"}, {"west"}),
        ({ZONE: "east__west"}, set()),
        ({ZONE: "east__ west "}, set()),
        ({ZONE: "east__"}, set()),  # an empty value among them: the label says nothing
        ({OLD_ZONE: "east"}, {"west"}),  # nodes have the new label in place of the old one
        ({ZONE: "east", REGION: "r"}, {"east", "west"}),
        ({"other": "east"}, set()),
    ],
)
def test_nodes_must_be_where_the_volume_is(storage: Storage, labels: Any, refused: set[str]) -> None:
    storage.claim(volume="pv")
    storage.volume("pv", metadata={"labels": labels})
    nodes = [node("east", labels={ZONE: "east"}), node("west", labels={ZONE: "west"}), node("nowhere")]
    outcome = schedule(pod_with("data"), on=nodes, plugins=[NAME], handle=storage)
    assert set(outcome.reasons) == refused
    assert all(reasons == [REASON] for reasons in outcome.reasons.values())


def test_all_volumes_count(storage: Storage) -> None:
    for name in ("east", "west"):
        storage.claim(name, volume=name)
        storage.volume(name, metadata={"labels": {ZONE: name}})
    nodes = [node("east", labels={ZONE: "east"}), node("west", labels={ZONE: "west"})]
    assert schedule(pod_with("east", "west"), on=nodes, plugins=[NAME], handle=storage).node_name is None


@pytest.mark.parametrize(
    ("claim", "mode", "message"),
    [
        (None, "Immediate", 'persistentvolumeclaim "data" not found'),
        ({"volume": "gone"}, "Immediate", 'persistentvolume "gone" not found'),
        ({"of": None}, "Immediate", "PersistentVolumeClaim had no pv name and storageClass name"),
        ({"of": "gone"}, "Immediate", 'storageclass.storage.k8s.io "gone" not found'),
        ({}, "Immediate", "PersistentVolume had no name"),
        ({}, None, 'VolumeBindingMode not set for StorageClass "late"'),
        ({}, "WaitForFirstConsumer", ""),
    ],
)
def test_claims_without_a_volume(storage: Storage, claim: Any, mode: Any, message: str) -> None:
    storage.storage_class(mode=mode)
    if claim is not None:
        storage.claim(**claim)
    outcome = schedule(pod_with("data"), on=[node("n")], plugins=[NAME], handle=storage)
    assert message in outcome.message
    if message:
        assert outcome.statuses["n"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    else:
        assert outcome.node_name == "n"


def test_pods_without_claims_have_one_signature() -> None:
    plugin = make_plugin(NAME)
    assert plugin.sign(pod_with()) is not None
    assert plugin.sign(pod_with("data")) is None


def test_events_and_hints(storage: Storage) -> None:
    waiting = pod_with("data")

    def asked(resource: str, action: Action, old: Any, new: Any) -> Hint | None:
        return ask_hint(NAME, ClusterEvent(resource, action), waiting, old=old, new=new)

    here, there = (storage.volume("pv", metadata={"labels": {ZONE: zone}}) for zone in ("east", "west"))
    assert asked(Resource.PERSISTENT_VOLUME, Action.ADD, None, here) == Hint.QUEUE
    assert asked(Resource.PERSISTENT_VOLUME, Action.UPDATE, here, there) == Hint.QUEUE
    assert asked(Resource.PERSISTENT_VOLUME, Action.UPDATE, here, here) == Hint.SKIP
    assert asked(Resource.STORAGE_CLASS, Action.ADD, None, storage.storage_class()) == Hint.QUEUE
    assert asked(Resource.STORAGE_CLASS, Action.ADD, None, storage.storage_class(mode="Immediate")) == Hint.SKIP
    assert asked(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, storage.claim()) == Hint.QUEUE
    assert asked(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, storage.claim("other")) == Hint.SKIP
