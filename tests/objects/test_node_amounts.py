from trio_sched.objects.node import Node
from trio_sched.objects.node_amounts import node_amounts
from trio_sched.objects.pod_requests import ResourceAmounts
from trio_sched.testing import node


def test_allocatable_is_counted_in_the_units_pods_are() -> None:
    amounts, allowed_pods = node_amounts(
        node(cpu="1500.1m", memory="1Ki", pods="110", allocatable={"example.com/gpu": 2, "ephemeral-storage": "1k"})
    )
    assert amounts == ResourceAmounts(1501, 1024, 1000, (("example.com/gpu", 2),))
    assert allowed_pods == 110


def test_a_node_that_reports_nothing_has_nothing() -> None:
    assert node_amounts(Node()) == (ResourceAmounts(), 0)
