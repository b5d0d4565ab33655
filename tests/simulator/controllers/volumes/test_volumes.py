from typing import Any

import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, VolumeController, VolumePace, trio_clock
from trio_sched.simulator.controllers.volumes.volume_shapes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ZONE,
)
from trio_sched.simulator.controllers.volumes.volumes import PROVISION_FAILURES, PROVISION_SECONDS

CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"


class Storage:
    """What users and schedulers do to storage."""

    def __init__(self, api: Api, controller: VolumeController) -> None:
        self.api, self.controller = api, controller

    async def storage_class(self, name: str = "fast", mode: str = "Immediate", **more: Any) -> Json:
        annotations = more.pop("annotations", {})
        body = {"metadata": {"name": name, "annotations": annotations}, "provisioner": "csi.test", **more}
        created: Json = await self.api(
            "POST", "/apis/storage.k8s.io/v1/storageclasses", {**body, "volumeBindingMode": mode}
        )
        return created

    async def claim(self, name: str = "data", **spec: Any) -> Json:
        wanted = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}
        spec = {**wanted, "resources": {"requests": {"storage": "1Gi"}}, **spec}
        created: Json = await self.api("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
        return created

    async def volume(self, name: str, *, size: str = "5Gi", **spec: Any) -> Json:
        wanted: Json = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
        wanted["csi"] = {"driver": "csi.test", "volumeHandle": name}
        created: Json = await self.api("POST", VOLUMES, {"metadata": {"name": name}, "spec": {**wanted, **spec}})
        return created

    async def select(self, node: str, name: str = "data") -> None:
        body = {"metadata": {"annotations": {SELECTED_NODE: node}}}
        await self.api("PATCH", f"{CLAIMS}/{name}", body, content_type="application/merge-patch+json")

    def stored(self, collection: str, key: str) -> Json | None:
        found = self.api.server.store.get(collection, key)
        return None if found is None else found.fields

    def state_of(self, name: str = "data") -> tuple[str, str]:
        """Phase of a claim, and its volume."""
        found = self.stored("persistentvolumeclaims", f"default/{name}")
        assert found is not None
        return found["status"]["phase"], found["spec"].get("volumeName", "")

    def phase(self, volume: str) -> str | None:
        found = self.stored("persistentvolumes", volume)
        return None if found is None else found["status"]["phase"]


@pytest.fixture
async def storage(nursery: trio.Nursery, autojump_clock: MockClock) -> Storage:
    api = Api(ApiServer(now=trio_clock()))
    controller = VolumeController(api.server, VolumePace(bind_seconds=1, provision_seconds=10))
    await nursery.start(controller.run)
    return Storage(api, controller)


async def test_an_immediate_claim_gets_the_smallest_volume_that_fits(
    storage: Storage, autojump_clock: MockClock
) -> None:
    await storage.storage_class()
    for name, size in (("large", "9Gi"), ("small", "2Gi"), ("tiny", "1Mi")):
        await storage.volume(name, size=size)
    await storage.volume("other-class", size="1Gi", storageClassName="slow")
    await trio.sleep(2)
    assert storage.phase("small") == "Available"
    claim = await storage.claim()
    await trio.sleep(2)
    assert storage.state_of() == ("Bound", "small")
    volume = storage.stored("persistentvolumes", "small")
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert volume["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    bound = storage.stored("persistentvolumeclaims", "default/data")
    assert bound["metadata"]["annotations"] == {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    assert bound["status"]["capacity"] == {"storage": "2Gi"}


async def test_an_immediate_claim_without_a_volume_gets_a_new_one_in_time(
    storage: Storage, autojump_clock: MockClock
) -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["east"]}]}]
    await storage.storage_class(allowedTopologies=allowed, reclaimPolicy="Retain")
    await storage.claim()
    await trio.sleep(10)
    assert storage.state_of() == ("Pending", "")
    assert storage.controller.is_busy
    await trio.sleep(3)
    phase, name = storage.state_of()
    volume = storage.stored("persistentvolumes", name)
    assert (phase, volume["status"]["phase"]) == ("Bound", "Bound")
    assert volume["spec"]["csi"]["driver"] == "csi.test"
    assert volume["spec"]["capacity"] == {"storage": "1Gi"}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["east"]}]
    assert not storage.controller.is_busy


async def test_a_claim_that_waits_gets_its_volume_once_it_has_a_node(
    storage: Storage, autojump_clock: MockClock
) -> None:
    await storage.storage_class(mode="WaitForFirstConsumer")
    await storage.volume("ready")
    await storage.claim()
    await trio.sleep(60)
    assert storage.state_of() == ("Pending", "")
    await storage.api("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": {ZONE: "west"}}})
    await storage.select("n")
    await trio.sleep(15)
    phase, name = storage.state_of()
    assert phase == "Bound"
    (term,) = storage.stored("persistentvolumes", name)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["west"]


async def test_a_volume_reserved_for_a_claim_is_bound_to_it(storage: Storage, autojump_clock: MockClock) -> None:
    await storage.storage_class(mode="WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner")
    claim = await storage.claim()
    reference = {"namespace": "default", "name": "data", "uid": claim["metadata"]["uid"]}
    await storage.volume("pv", claimRef=reference)
    await trio.sleep(2)
    assert storage.state_of() == ("Bound", "pv")
    assert storage.phase("pv") == "Bound"


async def test_a_claim_may_name_its_volume(storage: Storage, autojump_clock: MockClock) -> None:
    await storage.claim(volumeName="pv")
    await trio.sleep(2)
    assert storage.state_of() == ("Pending", "pv")
    await storage.volume("pv")
    await storage.storage_class()
    await trio.sleep(5)
    assert storage.state_of() == ("Bound", "pv")


async def test_a_provisioner_can_be_slow_and_can_fail(storage: Storage, autojump_clock: MockClock) -> None:
    annotations = {PROVISION_SECONDS: "100", PROVISION_FAILURES: "1"}
    await storage.storage_class(mode="WaitForFirstConsumer", annotations=annotations)
    await storage.api.create_node("n")
    await storage.claim()
    await storage.select("n")
    await trio.sleep(99)
    claim = storage.stored("persistentvolumeclaims", "default/data")
    assert claim["metadata"]["annotations"] == {SELECTED_NODE: "n"}
    await trio.sleep(5)
    assert SELECTED_NODE not in storage.stored("persistentvolumeclaims", "default/data")["metadata"]["annotations"]
    (event,) = storage.api.server.store.collection("events").objects.values()
    assert (event.fields["reason"], event.fields["type"]) == ("ProvisioningFailed", "Warning")
    assert event.fields["involvedObject"]["name"] == "data"
    await storage.select("n")
    await trio.sleep(105)
    assert storage.state_of()[0] == "Bound"


async def test_events_of_a_provisioner_that_always_fails_are_combined_and_limited(
    storage: Storage, autojump_clock: MockClock
) -> None:
    await storage.storage_class(annotations={PROVISION_FAILURES: "1000000"})
    await storage.claim()
    await trio.sleep(3600)
    (event,) = storage.api.server.store.collection("events").objects.values()
    assert event.fields["source"]["component"] == "persistentvolume-controller"
    assert 25 <= event.fields["count"] <= 40


async def test_an_immediate_claim_is_retried(storage: Storage, autojump_clock: MockClock) -> None:
    await storage.storage_class(annotations={PROVISION_FAILURES: "2"})
    await storage.claim()
    await trio.sleep(30)
    assert storage.state_of()[0] == "Pending"
    await trio.sleep(10)
    assert storage.state_of()[0] == "Bound"


async def test_a_claim_with_an_unknown_selected_node_is_reset(storage: Storage, autojump_clock: MockClock) -> None:
    await storage.storage_class(mode="WaitForFirstConsumer")
    await storage.claim()
    await storage.select("gone")
    await trio.sleep(15)
    assert SELECTED_NODE not in storage.stored("persistentvolumeclaims", "default/data")["metadata"]["annotations"]


@pytest.mark.parametrize(("policy", "phase"), [("Delete", None), ("Retain", "Released")])
async def test_a_volume_outlives_its_claim_only_with_policy_retain(
    storage: Storage, autojump_clock: MockClock, policy: str, phase: str | None
) -> None:
    await storage.storage_class(reclaimPolicy=policy)
    await storage.claim()
    await trio.sleep(15)
    _phase, name = storage.state_of()
    await storage.api("DELETE", f"{CLAIMS}/data")
    await trio.sleep(3)
    assert storage.phase(name) == phase


async def test_a_claim_whose_volume_is_deleted_is_lost(storage: Storage, autojump_clock: MockClock) -> None:
    await storage.storage_class()
    await storage.volume("pv")
    await storage.claim()
    await trio.sleep(3)
    await storage.api("DELETE", f"{VOLUMES}/pv")
    await trio.sleep(3)
    assert storage.state_of() == ("Lost", "pv")


async def test_claims_for_ephemeral_volumes_come_and_go_with_their_pod(
    storage: Storage, autojump_clock: MockClock
) -> None:
    template = {
        "metadata": {"labels": {"for": "scratch"}},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    pod = await storage.api.create_pod(
        "p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    )
    await trio.sleep(2)
    claim = storage.stored("persistentvolumeclaims", "default/p-scratch")
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (pod["metadata"]["uid"], True)
    assert claim["metadata"]["labels"] == {"for": "scratch"}
    await storage.api("DELETE", "/api/v1/namespaces/default/pods/p")
    await trio.sleep(2)
    assert storage.stored("persistentvolumeclaims", "default/p-scratch") is None


async def test_objects_created_before_the_controller_are_handled(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    api = Api(ApiServer(now=trio_clock()))
    controller = VolumeController(api.server)
    storage = Storage(api, controller)
    await storage.storage_class()
    await storage.claim()
    await storage.volume("pv")
    await nursery.start(controller.run)
    await trio.sleep(2)
    assert storage.state_of() == ("Bound", "pv")


async def test_a_provisioner_that_is_no_csi_driver(storage: Storage, autojump_clock: MockClock) -> None:
    body = {"metadata": {"name": "local"}, "provisioner": "example.com/local-path"}
    await storage.api("POST", "/apis/storage.k8s.io/v1/storageclasses", body)
    await storage.claim(storageClassName="local")
    await trio.sleep(15)
    phase, name = storage.state_of()
    volume = storage.stored("persistentvolumes", name)
    assert volume is not None
    assert (phase, volume["spec"]["hostPath"]["path"]) == ("Bound", f"/simulated/{name}")
