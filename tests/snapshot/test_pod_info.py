from pod_infos import pod_info

from trio_sched.snapshot.pod_info import each_pod
from trio_sched.testing import pod


def test_each_pod_comes_with_its_row() -> None:
    p, q, r = pod("p"), pod("q"), pod("r")
    by_row = [{one.uid: pod_info(one) for one in pods} for pods in ((p, q), (), (r,))]
    assert list(each_pod(by_row)) == [(0, p), (0, q), (2, r)]
