"""Names that the API server does not restrict stand in messages as kube-scheduler quotes them."""

from typing import Any

import msgspec
import pytest
from storage import Storage, pod_with

from plugins_builtin.dynamic_resources.binding_conditions import BindingFailed, is_ready
from trio_sched.plugin_api import NodeSelectorRequirement, NodeSelectorTerm, ResourceClaim
from trio_sched.testing import node, node_affinity, pod, schedule

NAMES = {
    'we"ird': r'"we\"ird"',
    "esc\x1b[31m": r'"esc\x1b[31m"',
    "x\u2028y": r'"x\u2028y"',
    "back\\slash\n": r'"back\\slash\n"',
    "\u202eabc\x7f": r'"\u202eabc\x7f"',
    "h\u00e9": '"h\u00e9"',
}
NODES = [node("n")]


def message(waiting: Any, plugin: str, storage: Storage) -> str:
    return schedule(waiting, on=NODES, plugins=[plugin], handle=storage).message


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("plugin", ["VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"])
def test_a_claim_that_does_not_exist(storage: Storage, name: str, plugin: str) -> None:
    storage.csi_node("n", csi_test=1)
    assert f"persistentvolumeclaim {NAMES[name]} not found" in message(pod_with(name), plugin, storage)


def test_a_claim_whose_volume_is_gone(storage: Storage, name: str) -> None:
    storage.claim(volume=name, status={"phase": "Lost"})
    assert f'"data" bound to non-existent persistentvolume {NAMES[name]}.' in message(
        pod_with("data"), "VolumeBinding", storage
    )
    assert f"persistentvolume {NAMES[name]} not found" in message(pod_with("data"), "VolumeZone", storage)


def test_a_storage_class_that_does_not_exist(storage: Storage, name: str) -> None:
    storage.claim(of=name)
    assert f"storageclass.storage.k8s.io {NAMES[name]} not found" in message(pod_with("data"), "VolumeZone", storage)


def test_a_value_of_a_preferred_node_affinity(storage: Storage, name: str) -> None:
    requirement = NodeSelectorRequirement(key="disk", operator="In", values=(name,))
    preferred = NodeSelectorTerm(match_expressions=(requirement,))
    waiting = pod(affinity=node_affinity(preferred=[(1, preferred)]))
    text = schedule(waiting, on=[node("n"), node("m")], plugins=["NodeAffinity"]).message
    start = 'running PreScore plugin "NodeAffinity": [0].matchExpressions[0].values[0][disk]: Invalid value: '
    assert text.startswith(f"{start}{NAMES[name]}: a valid label must be an empty string or consist of ")


def test_what_a_driver_says_of_a_device_that_failed(name: str) -> None:
    condition = {"type": "Broken", "status": "True", "reason": "Fell", "message": name}
    device = {"driver": "d", "pool": "p", "device": "x"}
    result = {"request": "r", **device, "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
    status = {"allocation": {"devices": {"results": [result]}}, "devices": [{**device, "conditions": [condition]}]}
    claim = msgspec.convert({"metadata": {"name": "c", "namespace": "default"}, "status": status}, ResourceClaim)
    with pytest.raises(BindingFailed) as caught:
        is_ready(claim)
    assert str(caught.value) == f"device binding failed: claim=c, reason=Fell, message={NAMES[name]}"


def test_a_value_in_the_selector_of_a_claim(storage: Storage, name: str) -> None:
    storage.storage_class(provisioner="kubernetes.io/no-provisioner")
    storage.claim(spec={"selector": {"matchLabels": {"tier": name}}})
    problem = f"values[0][tier]: Invalid value: {NAMES[name]}: a valid label must be an empty string or consist of "
    assert f"error creating internal label selector for claim: default/data: {problem}" in message(
        pod_with("data"), "VolumeBinding", storage
    )
