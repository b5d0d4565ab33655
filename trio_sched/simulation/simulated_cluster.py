"""What a simulated cluster has besides its API server and its schedulers; for simulations and for tests."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import trio

from trio_sched.simulator import ApiServer, Controllers, KubeletPace, run_kubelets
from trio_sched.simulator.controllers.nodes.node_registration import NodeRegistration

_PACE: Final = KubeletPace()


async def run_cluster(
    server: ApiServer,
    controllers: Controllers,
    *,
    kubelets: KubeletPace | None = _PACE,
    registers_nodes: bool = True,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the kubelets and controllers of the cluster of *server*; never returns.

    Args:
        server: the API server with the objects of the beginning.
        controllers: of *server*.
        kubelets: how fast they start pods; None: there are no kubelets.
        registers_nodes: whether nodes get the labels and conditions that kubelets give their nodes.
        task_status: reports when all of it runs.
    """
    async with trio.open_nursery() as nursery:
        if registers_nodes:
            await nursery.start(NodeRegistration(server).run)
        if kubelets is not None:
            await nursery.start(run_kubelets, server, kubelets)
        await nursery.start(controllers.run)
        task_status.started()


@contextmanager
def same_order(seed: int = 0) -> Generator[None, None, None]:
    """Tasks that are ready run in an order that *seed* decides: trio shuffles them, and has this switch for itself."""
    run: Any = getattr(getattr(trio, "_core", None), "_run", None)
    if not hasattr(run, "_ALLOW_DETERMINISTIC_SCHEDULING") or not isinstance(getattr(run, "_r", None), random.Random):
        yield  # a trio without that switch
        return
    before = run._ALLOW_DETERMINISTIC_SCHEDULING
    run._ALLOW_DETERMINISTIC_SCHEDULING = True
    run._r.seed(seed)
    try:
        yield
    finally:
        run._ALLOW_DETERMINISTIC_SCHEDULING = before
