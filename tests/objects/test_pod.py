import msgspec

from trio_sched.objects.pod import Pod
from trio_sched.testing import pod

WIRE = b"""{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "labels": {"app": "web"},
               "managedFields": [{"manager": "kubectl"}], "creationTimestamp": "2026-01-01T00:00:00Z"},
  "spec": {"nodeName": "n-1", "schedulerName": "mine", "priority": 5, "hostNetwork": true, "dnsPolicy": "Default",
           "containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "::"}],
                           "resources": {"requests": {"cpu": "1", "memory": 128}}}],
           "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 300}],
           "schedulingGates": [{"name": "g"}]},
  "status": {"phase": "Running", "nominatedNodeName": "n-2"}
}"""


def test_the_wire_is_read_into_the_fields_a_scheduler_needs() -> None:
    read = msgspec.json.decode(WIRE, type=Pod)
    assert (read.key, read.uid, read.labels, read.node_name) == ("shop/web-1", "u-1", {"app": "web"}, "n-1")
    assert (read.scheduler_name, read.priority, read.nominated_node_name) == ("mine", 5, "n-2")
    (made,) = read.spec.containers or ()
    assert made.resources is not None
    assert made.resources.requests == {"cpu": "1", "memory": 128}
    (port,) = made.ports or ()
    assert (port.host_port, port.host_ip) == (8080, "::")
    (tolerated,) = read.spec.tolerations or ()
    assert tolerated.toleration_seconds == 300


def test_what_is_missing_reads_as_go_would_read_it() -> None:
    empty = Pod()
    assert (empty.labels, empty.priority, empty.node_name, empty.spec.containers) == ({}, 0, "", None)


def test_writing_leaves_out_what_is_not_set() -> None:
    written = msgspec.json.decode(msgspec.json.encode(pod("p", cpu="1")))
    assert written["metadata"] == {"name": "p", "namespace": "default", "uid": "uid-of-default/p"}
    assert "nodeName" not in written["spec"]


def test_a_pod_is_terminal_once_it_has_succeeded_or_failed() -> None:
    assert [pod(phase=phase).is_terminal for phase in ("Pending", "Running", "Succeeded", "Failed")] == [
        False,
        False,
        True,
        True,
    ]
