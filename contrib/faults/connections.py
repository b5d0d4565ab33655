"""Faults of the network, made by the relay."""

from __future__ import annotations

import trio

from contrib.faults.cluster import Cluster
from contrib.faults.load import POD_PATH
from contrib.faults.relay import READ_BYTES, Mode

SMALL_REQUESTS_PER_MINUTE = 4


async def _during(here: Cluster, mode: Mode, seconds: float) -> None:
    here.relay.mode = mode
    here.relay.reset_all()
    await trio.sleep(seconds)
    here.relay.mode = Mode.FORWARD


async def reset(here: Cluster, *, seconds: float) -> None:
    """Every connection is reset, and every new one."""
    await _during(here, Mode.RESET, seconds)


async def close(here: Cluster, *, seconds: float) -> None:
    """Connections are accepted and closed: a load balancer without a backend."""
    await _during(here, Mode.CLOSE, seconds)


async def refuse(here: Cluster, *, seconds: float) -> None:
    """The port is closed."""
    here.relay.refuse()
    here.relay.reset_all()
    await trio.sleep(seconds)
    await here.relay.listen()


async def half_open(here: Cluster) -> None:
    """All connections go silent for good; new ones work."""
    here.relay.hold_all()


async def silence(here: Cluster, *, seconds: float, resume: bool) -> None:
    """All connections are silent, new ones, too; afterwards those go on, or only newer ones work."""
    here.relay.mode = Mode.HOLD
    here.relay.hold_all()
    await trio.sleep(seconds)
    here.relay.mode = Mode.FORWARD
    if resume:
        here.relay.release_all()


async def cut(here: Cluster, *, after_bytes: int, seconds: float) -> None:
    """Every connection is reset in the middle of what it brings."""
    here.relay.cut_after_bytes = after_bytes
    here.relay.reset_all()
    await trio.sleep(seconds)
    here.relay.cut_after_bytes = None
    here.relay.reset_all()


async def flap(here: Cluster, *, seconds: float) -> None:
    """Up and down, several times a second."""
    ends = trio.current_time() + seconds
    while trio.current_time() < ends:
        await _during(here, Mode.RESET, here.random.uniform(0.05, 0.3))
        await trio.sleep(here.random.uniform(0.05, 0.3))


async def delay(here: Cluster, *, each: float, seconds: float) -> None:
    """Everything takes longer."""
    here.relay.delay_seconds = each
    await trio.sleep(seconds)
    here.relay.delay_seconds = 0.0


async def half_closed(here: Cluster, *, seconds: float) -> None:
    """What the scheduler sends arrives, the answers do not."""
    here.relay.hold_answers()
    await trio.sleep(seconds)
    here.relay.release_answers()


async def trickle(here: Cluster, *, seconds: float) -> None:
    """A few hundred bytes arrive at a time."""
    here.relay.piece_bytes, here.relay.delay_seconds = 512, 0.05
    await trio.sleep(seconds)
    here.relay.piece_bytes, here.relay.delay_seconds = READ_BYTES, 0.0


async def garbage(here: Cluster, *, seconds: float) -> None:
    """Something else than the API server answers."""
    await _during(here, Mode.GARBAGE, seconds)


async def deleted_meanwhile(here: Cluster) -> None:
    """While the scheduler is cut off, pods and a node are deleted, and a node is cordoned."""
    names = [await here.create_pod() for _ in range(20)]
    for name in names:
        await here.wait_bound(name)
    here.relay.refuse()
    here.relay.reset_all()
    for name in names:
        await here.call(b"DELETE", f"{POD_PATH}/{name}".encode())
    node = await here.call(b"GET", b"/api/v1/nodes/n7")
    await here.call(b"DELETE", b"/api/v1/nodes/n7")
    del node["metadata"]["resourceVersion"], node["metadata"]["uid"]
    await trio.sleep(2)
    await here.call(b"POST", b"/api/v1/nodes", node)
    await here.relay.listen()


async def bound_meanwhile(here: Cluster) -> None:
    """While the scheduler is cut off, somebody else binds the pods that it had to bind."""
    here.relay.refuse()
    here.relay.reset_all()
    for number in range(20):
        name = await here.create_pod(cpu="50m")
        target = {"apiVersion": "v1", "kind": "Node", "name": f"n{number % 8}"}
        binding = {"metadata": {"name": name}, "target": target}
        await here.call(b"POST", f"{POD_PATH}/{name}/binding".encode(), binding)
    await trio.sleep(2)
    await here.relay.listen()


async def quiet(here: Cluster, *, minutes: int) -> None:
    """Nothing happens at all: that must not be an error, and costs few requests."""
    begin = here.scheduler.log_file.stat().st_size
    before, requests = await _watch_counts(here), here.relay.requests
    await trio.sleep(60.0 * minutes)
    after, requests = await _watch_counts(here), here.relay.requests - requests
    lines = here.scheduler.log_file.read_bytes()[begin:].decode(errors="replace").splitlines()
    here.problems += [line for line in lines if line.startswith("E")][:3]
    if not here.is_ours:
        return
    if after["lists"] != before["lists"]:
        here.problems.append(f"{after['lists'] - before['lists']:.0f} lists on a quiet cluster")
    # A watch that the server has ended is started again, with the pieces of a handshake.
    allowed = SMALL_REQUESTS_PER_MINUTE * minutes + 4 * (after["restarts"] - before["restarts"]) + 4
    if requests > allowed:
        here.problems.append(f"{requests} requests in {minutes} quiet minutes, where {allowed:.0f} are allowed")


async def _watch_counts(here: Cluster) -> dict[str, float]:
    """How often trio-sched has listed and begun watches; nothing for others."""
    if not here.is_ours:
        return {}
    counts = {"lists": 0.0, "restarts": 0.0}
    for line in (await here.page("/metrics")).splitlines():
        for name in counts:
            if line.startswith(f"trio_sched_watch_{name}_total{{"):
                counts[name] += float(line.rpartition(" ")[2])
    return counts
