from typing import Any

import msgspec
import pytest

from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Resource
from trio_sched.testing import FakeHandle, ask_hint, make_plugin, node, pod, schedule

FEATURES = "NodeDeclaredFeatures"
RESTART, NETWORK = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def needing(**spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p", "uid": "u"}, "spec": spec}, Pod)


RESTARTING = needing(containers=[{"restartPolicyRules": [{"action": "RestartAllContainers"}]}])
RESTARTING_INIT = needing(initContainers=[{"restartPolicyRules": [{"action": "RestartAllContainers"}]}])
OWN_USERS = needing(hostNetwork=True, hostUsers=False)
BOTH = needing(
    hostNetwork=True, hostUsers=False, containers=[{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]
)
NODES = [
    node("none"),
    node("restart", declared_features=["Other", RESTART]),
    node("all", declared_features=[RESTART, NETWORK]),
]


@pytest.mark.parametrize(
    ("waiting", "feasible"),
    [
        (RESTARTING, ("restart", "all")),
        (RESTARTING_INIT, ("restart", "all")),
        (OWN_USERS, ("all",)),
        (BOTH, ("all",)),
    ],
)
def test_nodes_must_declare_what_the_pod_needs(waiting: Pod, feasible: tuple[str, ...]) -> None:
    outcome = schedule(waiting, on=NODES, plugins=[FEATURES])
    assert outcome.feasible == feasible
    assert outcome.reasons["none"] == ["node(s) didn't match Pod's required features"]
    assert outcome.statuses["none"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.mark.parametrize(
    "waiting",
    [
        needing(containers=[{"restartPolicyRules": [{"action": "Restart"}]}]),
        needing(hostNetwork=True),
        needing(hostNetwork=True, hostUsers=True),
        needing(hostUsers=False),
    ],
)
def test_pods_without_required_features_are_skipped(waiting: Pod) -> None:
    assert schedule(waiting, on=NODES, plugins=[FEATURES]).state.skip_filter == {FEATURES}


MOUNT_OPTIONS = {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"bindMountOptions": ["noexec"]}]}


@pytest.mark.parametrize("emulated", [(1, 36), (1, 37)], ids=["1.36", "1.37"])
@pytest.mark.parametrize("containers", ["containers", "initContainers", "ephemeralContainers"])
def test_options_of_bind_mounts_need_a_node_that_supports_them_from_1_37_on(
    emulated: tuple[int, int], containers: str
) -> None:
    nodes = [node("none", declared_features=[RESTART]), node("mounts", declared_features=["VolumeBindMountOptions"])]
    waiting = needing(**{containers: [{"name": "c"}, MOUNT_OPTIONS]})
    outcome = schedule(waiting, on=nodes, plugins=[FEATURES], handle=FakeHandle(emulated_version=emulated))
    assert outcome.feasible == (("none", "mounts") if emulated == (1, 36) else ("mounts",))


def test_mounts_without_options_need_nothing() -> None:
    waiting = needing(containers=[{"volumeMounts": [{"name": "v"}, {"bindMountOptions": []}]}])
    outcome = schedule(waiting, on=NODES, plugins=[FEATURES], handle=FakeHandle(emulated_version=(1, 37)))
    assert outcome.state.skip_filter == {FEATURES}


NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
DECLARED = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
POD_UPDATE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE)


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (NODE_ADD, None, NODES[0], Hint.QUEUE),
        (DECLARED, NODES[0], NODES[1], Hint.QUEUE),
        (DECLARED, NODES[0], NODES[0], Hint.SKIP),
        (POD_UPDATE, RESTARTING, needing(), Hint.QUEUE),
        (POD_UPDATE, RESTARTING, RESTARTING, Hint.SKIP),
        (POD_UPDATE, pod("other"), pod("other"), Hint.SKIP),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, expected: Hint) -> None:
    assert ask_hint(FEATURES, event, RESTARTING, old=old, new=new) is expected


def test_the_required_features_are_the_signature() -> None:
    sign = make_plugin(FEATURES).sign
    assert sign(RESTARTING) == sign(RESTARTING_INIT) != sign(OWN_USERS)
    assert sign(pod()) == frozenset()
