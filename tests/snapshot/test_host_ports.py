from trio_sched.objects.pod_requests import HostPort
from trio_sched.snapshot.host_ports import HostPortIndex

HTTP, HTTPS, DNS = HostPort("0.0.0.0", "TCP", 80), HostPort("10.0.0.1", "TCP", 443), HostPort("0.0.0.0", "UDP", 53)


def test_ports_are_found_by_protocol_and_number() -> None:
    index = HostPortIndex()
    index.add(1, [HTTP, DNS])
    index.add(2, [HTTP, HostPort("10.0.0.9", "TCP", 80)])
    assert index.rows("TCP", 80) == {1: {"0.0.0.0"}, 2: {"0.0.0.0", "10.0.0.9"}}
    assert index.rows("UDP", 80) == {}
    assert index.of_row(1) == {HTTP, DNS}


def test_ports_are_a_set_so_two_users_of_one_port_give_it_back_together() -> None:
    index = HostPortIndex()
    index.add(1, [HTTP])
    index.add(1, [HTTP])
    index.remove(1, [HTTP])
    assert index.rows("TCP", 80) == {}
    index.remove(1, [HTTP])
    assert index.of_row(1) == set()


def test_giving_back_one_port_leaves_the_others() -> None:
    index = HostPortIndex()
    index.add(1, [HTTP, HTTPS])
    index.remove(1, [HTTP, DNS])
    assert index.of_row(1) == {HTTPS}
    index.remove(9, [HTTPS])
    assert index.rows("TCP", 443) == {1: {"10.0.0.1"}}


def test_a_node_takes_its_ports_along_to_another_row() -> None:
    index = HostPortIndex()
    index.add(5, [HTTP, DNS])
    index.move(5, 0)
    assert index.of_row(5) == set()
    assert index.rows("UDP", 53) == {0: {"0.0.0.0"}}
