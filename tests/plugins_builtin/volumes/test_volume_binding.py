from typing import Any

import pytest
from call_count import count_calls
from hypothesis import given
from hypothesis import strategies as st
from storage import Storage, pod_with

from trio_sched.config.feature_gates import resolve_feature_gates
from trio_sched.config.load import load_configuration
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import SKIP, Action, ClusterEvent, Code, CycleState, Hint, PreFlight, Resource, Status
from trio_sched.plugin_api.arguments import VolumeBindingArgs
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import ask_hint, make_plugin, node, schedule
from trio_sched.testing.plugin_harness import make_table

NAME = "VolumeBinding"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SELECTED = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
BINDING = "node(s) didn't find available persistent volumes to bind"
SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
LOCAL = {"provisioner": "kubernetes.io/no-provisioner"}
NODES = [node("a", labels={ZONE: "east"}), node("b", labels={ZONE: "west"})]


def decide(storage: Storage, pod: Pod, nodes: Any = NODES, **more: Any) -> Any:
    return schedule(pod, on=nodes, plugins=[NAME], handle=storage, **more)


# --- claims that keep a pod from being scheduled at all ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (None, 'persistentvolumeclaim "data" not found'),
        (
            {"volume": "pv", "status": {"phase": "Lost"}},
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
        ),
        (
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            'persistentvolumeclaim "data" is being deleted',
        ),
        ({"of": "now"}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"of": None}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"of": "unknown"}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"spec": {"volumeName": "pv"}}, "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_claims_that_are_not_ready(storage: Storage, claim: Any, message: str) -> None:
    storage.storage_class()
    storage.storage_class("now", mode="Immediate")
    if claim is not None:
        storage.claim(**claim)
    outcome = decide(storage, pod_with("data"))
    assert outcome.message.startswith(f"0/2 nodes are available: {message}.")
    assert outcome.statuses["a"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_class_without_binding_mode_is_an_error(storage: Storage) -> None:
    storage.storage_class(mode=None)
    storage.claim()
    outcome = decide(storage, pod_with("data"))
    assert outcome.error is not None
    assert 'VolumeBindingMode not set for StorageClass "late"' in outcome.message


def test_the_claim_of_an_ephemeral_volume_is_waited_for_and_must_be_the_pods_own(storage: Storage) -> None:
    storage.storage_class()
    wanting = pod_with({"name": "scratch", "ephemeral": {}})
    text = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-scratch"'
    assert text in decide(storage, wanting).message
    storage.claim("pod-scratch")
    text = "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)"
    assert text in decide(storage, wanting).message
    owner = {"kind": "Pod", "name": "pod", "uid": wanting.uid, "controller": True}
    storage.claim("pod-scratch", metadata={"ownerReferences": [owner]})
    assert decide(storage, wanting).node_name in ("a", "b")


# --- claims that have their volume ------------------------------------------------------------------------------------


def test_a_bound_volume_restricts_the_nodes(storage: Storage) -> None:
    storage.claim(volume="pv")
    storage.volume("pv", on={ZONE: ["west", "north"]})
    outcome = decide(storage, pod_with("data"))
    assert (outcome.node_name, outcome.reasons) == ("b", {"a": [AFFINITY]})
    assert outcome.statuses["a"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_missing_volume(storage: Storage) -> None:
    storage.claim(volume="pv")
    assert decide(storage, pod_with("data")).reasons == {"a": [MISSING], "b": [MISSING]}


def test_the_first_unreachable_bound_volume_is_reported(storage: Storage) -> None:
    storage.claim("one", volume="pv")
    storage.volume("pv", on={ZONE: "east"})
    storage.claim("two", volume="gone")
    assert decide(storage, pod_with("one", "two")).reasons == {"a": [MISSING], "b": [AFFINITY]}


def test_terms_about_the_names_of_nodes_are_not_looked_at(storage: Storage) -> None:
    storage.claim(volume="pv")
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    storage.volume("pv", spec={"nodeAffinity": {"required": {"nodeSelectorTerms": [named]}}})
    assert decide(storage, pod_with("data")).feasible == ("a", "b")
    storage.volume("pv", spec={"nodeAffinity": {"required": {"nodeSelectorTerms": []}}})
    assert decide(storage, pod_with("data")).feasible == ()


def test_in_tree_volumes_are_looked_for_in_the_labels_of_the_driver_that_took_over(storage: Storage) -> None:
    nodes = [
        node("old", labels={ZONE: "east"}),
        node("new", labels={"topology.ebs.csi.aws.com/zone": "east"}),
        node("else", labels={"topology.ebs.csi.aws.com/zone": "west", ZONE: "east"}),
    ]
    storage.csi_node("new", "kubernetes.io/aws-ebs")
    storage.csi_node("else", "kubernetes.io/aws-ebs")
    storage.claim(volume="pv")
    storage.volume("pv", on={ZONE: "east"}, spec={"awsElasticBlockStore": {"volumeID": "vol-1"}})
    assert decide(storage, pod_with("data"), nodes).feasible == ("old", "new")
    storage.volume("pv", spec={"awsElasticBlockStore": {"volumeID": "aws://nonsense"}})
    outcome = decide(storage, pod_with("data"), nodes)
    assert outcome.error is not None
    assert "could not translate pv: failed to translate Kubernetes ID to EBS Volume ID" in outcome.message


# --- volumes that lie ready -------------------------------------------------------------------------------------------


def reserved(storage: Storage, pod: Pod, node_name: str, nodes: Any = NODES) -> tuple[Any, CycleState, Any]:
    """The plugin, the state and the answer after pre_filter and reserve."""
    table, state = make_table(nodes), CycleState()
    storage.nodes, storage.pending = NodeColumns(table), {pod.key: pod}
    plugin = make_plugin(NAME, handle=storage)
    assert plugin.pre_filter(pod, NodeColumns(table), state) is None
    assert plugin.filter(pod, NodeColumns(table), state).passes[table.row_of[node_name]]
    return plugin, state, plugin.reserve(pod, node_name, state)


async def bind(storage: Storage, pod: Pod, node_name: str, nodes: Any = NODES) -> Any:
    """Reserve and run pre_bind."""
    plugin, state, answer = reserved(storage, pod, node_name, nodes)
    assert answer is None
    assert plugin.pre_bind_pre_flight(pod, node_name, state) == PreFlight(allow_parallel=True)
    return await plugin.pre_bind(pod, node_name, state)


def message(status: Status) -> str:
    assert status.code == Code.ERROR
    return status.message


def patched_volumes(storage: Storage) -> list[str]:
    return [name for kind, name, _patch in storage.patched if kind == "PersistentVolume"]


def finish_binding(storage: Storage) -> None:
    """What the volume controller does: claims get the volumes that are kept for them."""
    for volume in storage.known_objects.get("PersistentVolume", ()):
        reference = volume.spec.claim_ref
        if reference is not None:
            storage.claim(reference.name, volume=volume.name)
    for claim in storage.known_objects["PersistentVolumeClaim"]:
        annotations = claim.metadata.annotations or {}
        if SELECTED in annotations and not claim.spec.volume_name:
            storage.volume(f"made-{claim.name}")
            storage.claim(
                claim.name,
                volume=f"made-{claim.name}",
                metadata={"annotations": annotations, "resourceVersion": "999999"},
            )


@pytest.mark.parametrize(
    ("volume", "fits"),
    [
        ({}, True),
        ({"size": "1Gi"}, True),
        ({"size": "1023Mi"}, False),
        ({"of": "other"}, False),
        ({"spec": {"volumeMode": "Block"}}, False),
        ({"spec": {"volumeAttributesClassName": "fast"}}, False),
        ({"spec": {"accessModes": ["ReadWriteMany"]}}, False),
        ({"spec": {"accessModes": ["ReadWriteMany", "ReadWriteOnce"]}}, True),
        ({"status": {"phase": "Released"}}, False),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
        ({"spec": {"claimRef": {"namespace": "default", "name": "other"}}}, False),
        ({"spec": {"claimRef": {"namespace": "default", "name": "data", "uid": "another"}}}, False),
        ({"metadata": {"labels": {"tier": "gold"}}}, True),
        # What is kept for the claim is not asked for its phase, class or access modes.
        (
            {
                "status": {"phase": "Pending"},
                "spec": {"claimRef": {"namespace": "default", "name": "data"}, "accessModes": []},
            },
            True,
        ),
    ],
)
def test_which_volumes_a_claim_may_have(storage: Storage, volume: Any, fits: bool) -> None:
    storage.storage_class(**LOCAL)
    storage.claim()
    storage.volume("pv", **volume)
    outcome = decide(storage, pod_with("data"))
    assert outcome.reasons == ({} if fits else {"a": [BINDING], "b": [BINDING]})


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ({}, True),
        ({"matchLabels": {"tier": "gold"}}, True),
        ({"matchLabels": {"tier": "iron"}}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["iron"]}]}, True),
        ({"matchExpressions": [{"key": "speed", "operator": "Exists"}]}, False),
    ],
)
def test_a_claim_may_select_volumes_by_label(storage: Storage, selector: Any, fits: bool) -> None:
    storage.storage_class(**LOCAL)
    storage.claim(spec={"selector": selector})
    storage.volume("pv", metadata={"labels": {"tier": "gold"}})
    assert bool(decide(storage, pod_with("data")).feasible) == fits


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "a", "b", "not a"])), max_size=7),
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
)
def test_each_claim_gets_the_smallest_volume_that_is_left_on_the_node(
    volumes: list[tuple[int, str]], claims: list[int]
) -> None:
    storage = Storage()
    storage.storage_class(**LOCAL)
    for number, (size, where) in enumerate(volumes):
        operator, host = ("NotIn", "a") if where == "not a" else ("In", where)
        required = {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": operator, "values": [host]}]}]
        }
        affinity = {"nodeAffinity": {"required": required}} if where else {}
        storage.volume(f"pv{number}", size=f"{size}Gi", spec=affinity)
    for number, size in enumerate(claims):
        storage.claim(f"c{number}", spec={"resources": {"requests": {"storage": f"{size}Gi"}}})

    def fits(host: str) -> bool:
        left = sorted(size for size, where in volumes if where in ("", host) or (where == "not a" and host != "a"))
        for wanted in sorted(claims):
            chosen = next((size for size in left if size >= wanted), None)
            if chosen is None:
                return False
            left.remove(chosen)
        return True

    nodes = [node(host, labels={ZONE: host}) for host in "ab"]
    outcome = decide(storage, pod_with(*(f"c{number}" for number in range(len(claims)))), nodes)
    assert set(outcome.feasible) == {host for host in "ab" if fits(host)}


@pytest.mark.parametrize("are_alike", [True, False])
def test_the_affinity_of_a_volume_is_not_evaluated_for_each_of_many_claims(are_alike: bool) -> None:
    def calls(count: int) -> int:
        storage = Storage()
        storage.storage_class(**LOCAL)
        for number in range(count):
            size = "1Gi" if are_alike else f"{number + 1}Gi"
            elsewhere = {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": [f"{number}"]}]}
            storage.volume(
                f"pv{number}", size=size, spec={"nodeAffinity": {"required": {"nodeSelectorTerms": [elsewhere]}}}
            )
            storage.claim(f"c{number}", spec={"resources": {"requests": {"storage": size}}})
        wanting = pod_with(*(f"c{number}" for number in range(count)))
        assert decide(storage, wanting).node_name
        return count_calls(lambda: decide(storage, wanting))

    assert calls(40) - calls(20) < 15 * (40 * 40 - 20 * 20)  # what remains is whether a volume can be bound to a claim


def test_a_volume_kept_for_the_claim_is_the_only_choice(storage: Storage) -> None:
    storage.storage_class(**LOCAL)
    storage.claim()
    storage.volume("kept", on={HOST: "b"}, spec={"claimRef": {"namespace": "default", "name": "data"}})
    storage.volume("free", size="1Gi")
    assert decide(storage, pod_with("data")).reasons == {"a": [BINDING]}


async def test_the_smallest_that_is_large_enough_is_taken(storage: Storage) -> None:
    storage.storage_class(**LOCAL)
    storage.claim()
    for name, size in (("large", "9Gi"), ("small", "2Gi"), ("tiny", "1Mi"), ("also-small", "2Gi")):
        storage.volume(name, size=size)
    storage.while_waiting = lambda: finish_binding(storage)
    assert await bind(storage, pod_with("data"), "a") is None
    assert patched_volumes(storage) == ["also-small"]
    (_kind, _name, patch) = storage.patched[0]
    assert patch["metadata"] == {"annotations": {BY_CONTROLLER: "yes"}, "resourceVersion": "7"}
    assert patch["spec"]["claimRef"] == {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "data",
        "uid": "uid-of-data",
        "resourceVersion": "7",
    }


async def test_claims_of_one_pod_share_the_available_volumes_of_each_node(storage: Storage) -> None:
    storage.storage_class(**LOCAL)
    storage.claim("large", spec={"resources": {"requests": {"storage": "3Gi"}}})
    storage.claim("small")
    storage.volume("a-5", on={HOST: "a"})
    storage.volume("a-4", on={HOST: "a"}, size="4Gi")
    storage.volume("b-5", on={HOST: "b"})
    storage.volume("anywhere", size="1Gi", on={HOST: ["a", "b"]})
    outcome = decide(storage, pod_with("large", "small"))
    assert outcome.feasible == ("a", "b")
    storage.claim("second", spec={"resources": {"requests": {"storage": "3Gi"}}})
    outcome = decide(storage, pod_with("large", "second", "small"))
    assert (outcome.feasible, outcome.reasons) == (("a",), {"b": [BINDING]})
    storage.while_waiting = lambda: finish_binding(storage)
    assert await bind(storage, pod_with("large", "second", "small"), "a") is None
    assert sorted(patched_volumes(storage)) == ["a-4", "a-5", "anywhere"]


# --- volumes that would be made ---------------------------------------------------------------------------------------


def topologies(*terms: dict[str, list[str]]) -> list[Any]:
    return [
        {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]} for term in terms
    ]


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        ([], set()),
        (topologies({ZONE: ["east"]}), {"b"}),
        (topologies({ZONE: ["east"]}, {ZONE: ["west"]}), set()),
        (topologies({ZONE: ["east"], HOST: ["b"]}), {"a", "b"}),
        (topologies({}), {"a", "b"}),
    ],
)
def test_allowed_topologies_restrict_provisioning(storage: Storage, allowed: Any, refused: set[str]) -> None:
    storage.storage_class(allowedTopologies=allowed)
    storage.claim()
    outcome = decide(storage, pod_with("data"))
    assert set(outcome.reasons) == refused
    assert all(reasons == [BINDING] for reasons in outcome.reasons.values())


@pytest.mark.parametrize(
    ("capacity", "refused"),
    [
        ({}, {"a", "b"}),
        ({"capacity": "1Gi", "nodeTopology": {}}, set()),
        ({"capacity": "1Gi", "nodeTopology": {"matchLabels": {ZONE: "east"}}}, {"b"}),
        ({"capacity": "1Gi"}, {"a", "b"}),
        ({"capacity": "1023Mi", "nodeTopology": {}}, {"a", "b"}),
        ({"capacity": "9Gi", "maximumVolumeSize": "1Mi", "nodeTopology": {}}, {"a", "b"}),
        ({"maximumVolumeSize": "1Gi", "nodeTopology": {}}, set()),
        ({"capacity": "1Gi", "nodeTopology": {}, "storageClassName": "other"}, {"a", "b"}),
    ],
)
def test_storage_capacity_restricts_provisioning(storage: Storage, capacity: Any, refused: set[str]) -> None:
    storage.storage_class()
    storage.claim()
    pool = {"metadata": {"name": "pool", "namespace": "kube-system"}, "storageClassName": "late", **capacity}
    storage.put("CSIStorageCapacity", pool)
    assert decide(storage, pod_with("data")).reasons == {}
    storage.put("CSIDriver", {"metadata": {"name": "csi.test"}, "spec": {"storageCapacity": True}})
    outcome = decide(storage, pod_with("data"))
    assert outcome.reasons == {name: [SPACE] for name in refused}
    storage.claim(spec={"resources": {"requests": None}})
    assert decide(storage, pod_with("data")).reasons == {}


def test_a_claim_with_a_selected_node_keeps_it(storage: Storage) -> None:
    storage.storage_class()
    storage.claim(metadata={"annotations": {SELECTED: "b"}})
    storage.volume("ready")
    assert decide(storage, pod_with("data")).reasons == {"a": [BINDING]}
    storage.claim("other", metadata={"annotations": {SELECTED: "a"}})
    assert decide(storage, pod_with("data", "other")).feasible == ()


def test_all_reasons_of_a_node_are_reported(storage: Storage) -> None:
    storage.claim("bound", volume="pv")
    storage.volume("pv", on={ZONE: "north"})
    storage.storage_class(**LOCAL)
    storage.claim()
    assert decide(storage, pod_with("bound", "data")).reasons["a"] == [AFFINITY, BINDING]


# --- reserve, unreserve -----------------------------------------------------------------------------------------------


def test_a_reserved_volume_is_not_used_by_another_pod_until_unreserved(storage: Storage) -> None:
    storage.storage_class(**LOCAL)
    storage.claim("one")
    storage.claim("two")
    storage.volume("pv")
    first, second = pod_with("one", name="first"), pod_with("two", name="second")
    plugin, state, answer = reserved(storage, first, "a")
    assert answer is None
    nodes = storage.nodes

    def fits(pod: Pod) -> bool:
        tried = CycleState()
        assert plugin.pre_filter(pod, nodes, tried) is None
        return bool(plugin.filter(pod, nodes, tried).passes.any())

    assert not fits(second)
    assert fits(first)
    plugin.unreserve(first, "a", state)
    assert fits(second)


def test_an_unreserved_claim_may_go_to_any_node_again(storage: Storage) -> None:
    storage.storage_class()
    storage.claim()
    waiting = pod_with("data")
    plugin, state, _answer = reserved(storage, waiting, "a")
    plugin.unreserve(waiting, "a", state)
    tried = CycleState()
    assert plugin.pre_filter(waiting, storage.nodes, tried) is None
    assert plugin.filter(waiting, storage.nodes, tried).passes.tolist() == [True, True]


def test_newer_versions_from_the_api_server_replace_assumed_ones(storage: Storage) -> None:
    storage.storage_class()
    storage.claim()
    waiting = pod_with("data")
    plugin, _state, _answer = reserved(storage, waiting, "a")

    def feasible() -> list[bool]:
        tried = CycleState()
        plugin.pre_filter(waiting, storage.nodes, tried)
        passes: list[bool] = plugin.filter(waiting, storage.nodes, tried).passes.tolist()
        return passes

    assert feasible() == [True, False]
    storage.claim(metadata={"resourceVersion": "8"})
    assert feasible() == [True, True]


def test_a_volume_that_changes_under_the_decision_is_out_of_sync(storage: Storage) -> None:
    storage.storage_class()
    storage.claim()
    table, state, waiting = make_table(NODES), CycleState(), pod_with("data")
    storage.nodes = NodeColumns(table)
    plugin = make_plugin(NAME, handle=storage)
    plugin.pre_filter(waiting, NodeColumns(table), state)
    storage.claim(metadata={"resourceVersion": "8"})
    status = plugin.reserve(waiting, "a", state)
    assert (status.code, status.message) == (Code.ERROR, '"default/data" is out of sync (stored: 8, assume: 7)')


def test_pods_whose_claims_are_bound_have_nothing_to_reserve(storage: Storage) -> None:
    storage.claim(volume="pv")
    storage.volume("pv")
    plugin, state, answer = reserved(storage, pod_with("data"), "a")
    assert answer is None
    assert plugin.pre_bind_pre_flight(pod_with("data"), "a", state) is SKIP
    assert plugin.pre_bind_pre_flight(pod_with(), "a", CycleState()) is SKIP


# --- pre_bind ---------------------------------------------------------------------------------------------------------


async def test_pre_bind_selects_the_node_and_waits_for_the_claim(storage: Storage) -> None:
    storage.storage_class()
    storage.claim()
    storage.while_waiting = lambda: finish_binding(storage) if storage.clock >= 20 else None
    assert await bind(storage, pod_with("data"), "b") is None
    patch = {"metadata": {"annotations": {SELECTED: "b"}, "resourceVersion": "7"}}
    assert storage.patched == [("PersistentVolumeClaim", "default/data", patch)]
    assert storage.clock == 20


def lose_pod(storage: Storage) -> None:
    storage.pending.clear()


def lose_node(storage: Storage) -> None:
    storage.nodes = NodeColumns(make_table(NODES[1:]))


def take_annotation(storage: Storage) -> None:
    storage.claim(metadata={"resourceVersion": "9999", "annotations": {"other": "x"}})


def take_all_annotations(storage: Storage) -> None:
    storage.claim(metadata={"resourceVersion": "9999", "annotations": None})


def delete_claim(storage: Storage) -> None:
    storage.known_objects["PersistentVolumeClaim"] = []


def make_elsewhere(storage: Storage) -> None:
    storage.volume("made", on={ZONE: "west"})
    annotations = {SELECTED: "a"}
    storage.claim(volume="made", metadata={"resourceVersion": "9999", "annotations": annotations})


def do_nothing(storage: Storage) -> None: ...


@pytest.mark.parametrize(
    ("meanwhile", "problem"),
    [
        (lose_pod, 'pod does not exist any more: pod "pod" not found'),
        (lose_node, 'failed to get node "a": node "a" not found'),
        (take_annotation, 'provisioning failed for PVC "data"'),
        (take_all_annotations, 'selectedNode annotation reset for PVC "data"'),
        (delete_claim, 'failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/data"'),
        (make_elsewhere, 'pv "made" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'),
        (do_nothing, "context deadline exceeded"),
    ],
)
async def test_what_ends_the_wait_for_a_new_volume(storage: Storage, meanwhile: Any, problem: str) -> None:
    storage.storage_class()
    storage.claim()
    storage.while_waiting = lambda: meanwhile(storage)
    assert message(await bind(storage, pod_with("data"), "a")) == f"binding volumes: {problem}"


def reset_reference(storage: Storage) -> None:
    storage.volume("pv", metadata={"resourceVersion": "9999"})


def delete_volume(storage: Storage) -> None:
    storage.known_objects["PersistentVolume"] = []


def move_volume(storage: Storage) -> None:
    storage.volume("pv", on={ZONE: "west"}, metadata={"resourceVersion": "9999"})


@pytest.mark.parametrize(
    ("meanwhile", "problem"),
    [
        (reset_reference, 'ClaimRef got reset for pv "pv"'),
        (delete_volume, 'failed to check binding: could not find v1.PersistentVolume "pv"'),
        (delete_claim, 'failed to check binding: could not find v1.PersistentVolumeClaim "default/data"'),
        (move_volume, 'pv "pv" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'),
    ],
)
async def test_what_ends_the_wait_for_an_existing_volume(storage: Storage, meanwhile: Any, problem: str) -> None:
    storage.storage_class(**LOCAL)
    storage.claim()
    storage.volume("pv")
    storage.while_waiting = lambda: meanwhile(storage)
    assert message(await bind(storage, pod_with("data"), "a")) == f"binding volumes: {problem}"


async def test_a_refused_write_ends_pre_bind_with_the_message_of_the_server(storage: Storage) -> None:
    storage.storage_class()
    storage.claim()
    storage.refusal = RuntimeError("the object has been modified")
    assert message(await bind(storage, pod_with("data"), "a")) == "the object has been modified"


# --- scores -----------------------------------------------------------------------------------------------------------


def test_without_the_gate_it_does_not_score(storage: Storage) -> None:
    storage.storage_class()
    storage.claim()
    assert decide(storage, pod_with("data")).raw_scores.get(NAME, {}) == {}


@pytest.mark.parametrize(("version", "expected"), [("1.36", {}), ("1.37", {"a": 50, "b": 90})])
def test_since_1_37_the_room_that_is_left_is_scored_by_default(
    version: str, expected: dict[str, int], storage: Storage
) -> None:
    gates = resolve_feature_gates(emulated=[version])
    storage.gates["StorageCapacityScoring"] = gates.enabled("StorageCapacityScoring")
    arguments = load_configuration(None, gates=gates).profiles[0].arguments_of(NAME)
    assert isinstance(arguments, VolumeBindingArgs)
    shape = [{"utilization": point.utilization, "score": point.score} for point in arguments.shape or ()]
    storage.storage_class()
    storage.put("CSIDriver", {"metadata": {"name": "csi.test"}, "spec": {"storageCapacity": True}})
    for zone, capacity in (("east", "20Gi"), ("west", "100Gi")):
        pool = {
            "metadata": {"name": zone, "namespace": "kube-system"},
            "storageClassName": "late",
            "capacity": capacity,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
        }
        storage.put("CSIStorageCapacity", pool)
    storage.claim(spec={"resources": {"requests": {"storage": "10Gi"}}})
    outcome = decide(storage, pod_with("data"), args={NAME: {"shape": shape} if shape else {}})
    assert outcome.raw_scores.get(NAME, {}) == expected


def test_with_the_gate_fuller_storage_is_better(storage: Storage) -> None:
    storage.gates["StorageCapacityScoring"] = True
    storage.storage_class()
    storage.put("CSIDriver", {"metadata": {"name": "csi.test"}, "spec": {"storageCapacity": True}})
    for zone, capacity in (("east", "2Gi"), ("west", "10Gi")):
        pool = {
            "metadata": {"name": zone, "namespace": "kube-system"},
            "storageClassName": "late",
            "capacity": capacity,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
        }
        storage.put("CSIStorageCapacity", pool)
    storage.claim()
    shape = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    outcome = decide(storage, pod_with("data"), args={NAME: shape})
    assert outcome.raw_scores[NAME] == {"a": 50, "b": 10}
    assert decide(storage, pod_with(), args={NAME: shape}).raw_scores[NAME] == {"a": 0, "b": 0}
    for name in ("a", "b"):
        storage.volume(f"on-{name}", on={HOST: name}, size="4Gi" if name == "a" else "1Gi")
    outcome = decide(storage, pod_with("data"), args={NAME: shape})
    assert outcome.raw_scores[NAME] == {"a": 25, "b": 100}


# --- events -----------------------------------------------------------------------------------------------------------


def test_pods_without_claims_have_one_signature(storage: Storage) -> None:
    plugin = make_plugin(NAME, handle=storage)
    assert plugin.sign(pod_with()) == plugin.sign(pod_with({"name": "d", "csi": {"driver": "d"}})) is not None
    assert plugin.sign(pod_with("data")) is plugin.sign(pod_with({"name": "d", "ephemeral": {}})) is None


def test_events_and_hints(storage: Storage) -> None:
    waiting = pod_with("data", {"name": "e", "ephemeral": {}}, {"name": "c", "csi": {"driver": "csi.test"}})

    def asked(resource: str, action: Action, old: Any, new: Any) -> Hint | None:
        return ask_hint(NAME, ClusterEvent(resource, action), waiting, old=old, new=new, handle=storage)

    for name, hint in (("data", Hint.QUEUE), ("pod-e", Hint.QUEUE), ("other", Hint.SKIP)):
        assert asked(Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, None, storage.claim(name)) == hint
    assert asked(Resource.PERSISTENT_VOLUME, Action.UPDATE, None, storage.volume("pv")) == Hint.QUEUE
    plain, limited = storage.storage_class(), storage.storage_class(allowedTopologies=topologies({ZONE: ["a"]}))
    assert asked(Resource.STORAGE_CLASS, Action.ADD, None, plain) == Hint.QUEUE
    assert asked(Resource.STORAGE_CLASS, Action.UPDATE, plain, limited) == Hint.QUEUE
    assert asked(Resource.STORAGE_CLASS, Action.UPDATE, plain, plain) == Hint.SKIP
    one, other = storage.csi_node("n"), storage.csi_node("n", "kubernetes.io/aws-ebs")
    assert asked(Resource.CSI_NODE, Action.UPDATE, one, other) == Hint.QUEUE
    assert asked(Resource.CSI_NODE, Action.UPDATE, one, one) == Hint.SKIP
    counts, does_not = (
        storage.put("CSIDriver", {"metadata": {"name": "csi.test"}, "spec": {"storageCapacity": does}})
        for does in (True, False)
    )
    assert asked(Resource.CSI_DRIVER, Action.UPDATE, counts, does_not) == Hint.QUEUE
    assert asked(Resource.CSI_DRIVER, Action.UPDATE, does_not, counts) == Hint.SKIP
    little, much = (
        storage.put("CSIStorageCapacity", {"metadata": {"name": "pool"}, "capacity": size}) for size in ("1Gi", "2Gi")
    )
    assert asked(Resource.CSI_STORAGE_CAPACITY, Action.UPDATE, little, much) == Hint.QUEUE
    assert asked(Resource.CSI_STORAGE_CAPACITY, Action.UPDATE, much, little) == Hint.SKIP
