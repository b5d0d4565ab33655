from typing import Any

import pytest
from call_count import count_calls

from trio_sched.objects.pod import ContainerPort
from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, Resource
from trio_sched.testing import ask_hint, container, make_plugin, node, pod, schedule

PORTS = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"


def port(number: int, ip: str = "", protocol: str = "TCP") -> ContainerPort:
    return ContainerPort(host_port=number, host_ip=ip, protocol=protocol)


@pytest.mark.parametrize(
    ("taken", "wanted", "free"),
    [
        (port(80), port(80), False),
        (port(80), port(81), True),
        (port(80), port(80, protocol="UDP"), True),
        (port(80), port(80, "10.0.0.1"), False),
        (port(80, "10.0.0.1"), port(80), False),
        (port(80, "10.0.0.1"), port(80, "10.0.0.2"), True),
        (port(80, "10.0.0.1"), port(80, "10.0.0.1"), False),
        (port(80, "::"), port(80, "10.0.0.1"), True),
        (port(80, "0.0.0.0"), port(80, "::"), False),
        (port(80), port(0), True),
    ],
)
def test_a_port_can_be_taken_once_per_address(taken: ContainerPort, wanted: ContainerPort, free: bool) -> None:
    running = [pod("r", host_ports=[taken], node_name="n")]
    outcome = schedule(pod(host_ports=[wanted]), on=[node("n"), node("m")], plugins=[PORTS], pods=running)
    assert outcome.reasons == ({} if free else {"n": [REASON]})
    if not free:
        assert outcome.statuses["n"].code == Code.UNSCHEDULABLE


def test_without_host_ports_it_is_skipped() -> None:
    assert schedule(pod(), on=[node()], plugins=[PORTS]).state.skip_filter == {PORTS}


def test_sidecars_keep_their_ports_and_other_init_containers_do_not() -> None:
    running = [
        pod("s", node_name="n", init_containers=[container(host_ports=[1], sidecar=True), container(host_ports=[2])])
    ]
    nodes = [node("n")]
    assert schedule(pod(host_ports=[1]), on=nodes, plugins=[PORTS], pods=running).node_name is None
    assert schedule(pod(host_ports=[2]), on=nodes, plugins=[PORTS], pods=running).node_name == "n"


POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (POD_DELETE, pod("r", host_ports=[80], node_name="n"), None, Hint.QUEUE),
        (POD_DELETE, pod("r", host_ports=[80], nominated_node_name="n"), None, Hint.QUEUE),
        (POD_DELETE, pod("r", host_ports=[80]), None, Hint.SKIP),
        (POD_DELETE, pod("r", host_ports=[81], node_name="n"), None, Hint.SKIP),
        (POD_DELETE, pod("r", node_name="n"), None, Hint.SKIP),
        (ClusterEvent(Resource.NODE, Action.ADD), None, node(), Hint.QUEUE),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL), node(), node(), None),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, expected: Hint | None) -> None:
    assert ask_hint(PORTS, event, pod("waiting", host_ports=[80]), old=old, new=new) is expected


def test_pods_with_the_same_ports_have_one_signature() -> None:
    sign = make_plugin(PORTS).sign
    assert sign(pod("a", host_ports=[80])) == sign(pod("b", host_ports=[80]))
    assert sign(pod(host_ports=[port(80, "10.0.0.1")])) != sign(pod(host_ports=[80]))


def test_twice_the_addresses_of_a_port_are_twice_the_work_and_not_four_times() -> None:
    def work(count: int) -> int:
        def ports(net: str) -> list[ContainerPort]:
            return [port(80, f"{net}.{i // 250}.{i % 250}") for i in range(count)]

        running, wanted = pod("r", host_ports=ports("10.1"), node_name="n"), pod(host_ports=ports("10.2"))
        deleted = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
        return count_calls(lambda: schedule(wanted, on=[node("n")], plugins=[PORTS], pods=[running])) + count_calls(
            lambda: ask_hint(PORTS, deleted, wanted, old=running)
        )

    assert work(400) < 2.5 * work(200)
