import pytest
import trio
from simulated_workloads import Cluster, turn_scheduler
from trio.testing import MockClock

from trio_sched.simulator import ApiServer, Controllers, KubeletPace, run_kubelets, trio_clock


@pytest.fixture
async def cluster(nursery: trio.Nursery, autojump_clock: MockClock) -> Cluster:
    """Three nodes; pods run a second after they are made, and are gone a second after their deletion."""
    cluster = Cluster(ApiServer(now=trio_clock()))
    turn_scheduler(cluster)
    await nursery.start(run_kubelets, cluster.server, KubeletPace())
    await nursery.start(Controllers(cluster.server).run)
    nursery.start_soon(cluster.schedule)
    for name in ("n1", "n2", "n3"):
        await cluster.create_node(name)
    return cluster
