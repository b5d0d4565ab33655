import json

import msgspec

from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.raw_object import keep_raw_node, keep_raw_pod, raw_json
from trio_sched.testing import node, pod

RAW = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "managedFields": [{"manager": "kubectl"}], "finalizers": ["a/b"]},
    "spec": {"nodeName": "n", "dnsPolicy": "Default"},
}


def test_everything_is_kept_but_what_kube_scheduler_drops() -> None:
    raw = json.dumps(RAW).encode()
    kept = keep_raw_pod(msgspec.json.decode(raw, type=Pod), raw)
    assert isinstance(kept, Pod)
    assert (kept.name, kept.node_name) == ("p", "n")
    assert json.loads(raw_json(kept)) == {
        "metadata": {"name": "p", "finalizers": ["a/b"]},
        "spec": {"nodeName": "n", "dnsPolicy": "Default"},
    }


def test_a_node_keeps_what_only_others_read() -> None:
    raw = b'{"metadata":{"name":"n"},"status":{"nodeInfo":{"architecture":"arm64"}}}'
    kept = keep_raw_node(msgspec.json.decode(raw, type=Node), raw)
    assert json.loads(raw_json(kept))["status"] == {"nodeInfo": {"architecture": "arm64"}}


def test_what_was_not_kept_is_as_much_as_a_scheduler_reads() -> None:
    assert json.loads(raw_json(pod("p", cpu="1")))["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert json.loads(raw_json(node("n")))["metadata"]["name"] == "n"
