"""The faults: what happens to the connections, the servers, the certificates and the schedulers.

Each returns when it is over: a pod that is created then is what the recovery is measured with.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from functools import partial

import trio
from attrs import frozen

from contrib.faults.relay import Mode
from contrib.faults.world import World

Inject = Callable[[World], Awaitable[None]]


@frozen(kw_only=True)
class Fault:
    """One row of the table.

    Attributes:
        name: of the row.
        inject: makes the fault, and ends it.
        times: how often in a row, in the same process.
        fresh: whether the scheduler is started anew before.
        limit_seconds: the longest recovery that is good enough.
    """

    name: str
    inject: Inject
    times: int = 1
    fresh: bool = True
    limit_seconds: float = 1.5


async def _during(here: World, mode: Mode, seconds: float) -> None:
    here.relay.mode = mode
    here.relay.reset_all()
    await trio.sleep(seconds)
    here.relay.mode = Mode.FORWARD


async def reset(here: World, *, seconds: float) -> None:
    """Every connection is reset, and every new one."""
    await _during(here, Mode.RESET, seconds)


async def close(here: World, *, seconds: float) -> None:
    """Connections are accepted and closed: a load balancer without a backend."""
    await _during(here, Mode.CLOSE, seconds)


async def refuse(here: World, *, seconds: float) -> None:
    """The port is closed."""
    here.relay.refuse()
    here.relay.reset_all()
    await trio.sleep(seconds)
    await here.relay.listen()


async def half_open(here: World) -> None:
    """All connections go silent for good; new ones work."""
    here.relay.hold_all()


async def silence(here: World, *, seconds: float, resume: bool) -> None:
    """All connections are silent, new ones, too; afterwards those go on, or only newer ones work."""
    here.relay.mode = Mode.HOLD
    here.relay.hold_all()
    await trio.sleep(seconds)
    here.relay.mode = Mode.FORWARD
    if resume:
        here.relay.release_all()


async def cut(here: World, *, after_bytes: int, seconds: float) -> None:
    """Every connection is reset in the middle of what it brings."""
    here.relay.cut_after_bytes = after_bytes
    here.relay.reset_all()
    await trio.sleep(seconds)
    here.relay.cut_after_bytes = None
    here.relay.reset_all()


async def flap(here: World, *, seconds: float) -> None:
    """Up and down, several times a second."""
    ends = trio.current_time() + seconds
    while trio.current_time() < ends:
        await _during(here, Mode.RESET, here.random.uniform(0.05, 0.3))
        await trio.sleep(here.random.uniform(0.05, 0.3))


async def delay(here: World, *, each: float, seconds: float) -> None:
    """Everything takes longer."""
    here.relay.delay_seconds = each
    await trio.sleep(seconds)
    here.relay.delay_seconds = 0.0


async def restart_api_server(here: World, *, number: int, down_seconds: float = 0.0) -> None:
    """The API server ends and is started again."""
    await here.plane.api_server.stop(number)
    await trio.sleep(down_seconds)
    await here.plane.start_api_server()


async def api_server_away(here: World, *, seconds: float) -> None:
    """The API server is down behind the relay, which goes on accepting."""
    await here.plane.api_server.stop(signal.SIGTERM)
    await trio.sleep(seconds)
    await here.plane.start_api_server()


async def suspend_api_server(here: World, *, seconds: float) -> None:
    """The API server hangs."""
    here.plane.api_server.suspend()
    await trio.sleep(seconds)
    here.plane.api_server.resume()
    await here.plane.wait_ready()


async def lose_history(here: World) -> None:
    """The history is compacted and the API server started again: watches get 410."""
    here.relay.refuse()
    here.relay.reset_all()
    for _ in range(5):
        await here.create_pod(nodeName="n0")
    await here.plane.api_server.stop(signal.SIGKILL)
    await here.plane.compact()
    await here.plane.start_api_server()
    await here.relay.listen()


async def restart_etcd(here: World, *, down_seconds: float) -> None:
    """etcd is away for a while."""
    await here.plane.etcd.stop(signal.SIGKILL)
    await trio.sleep(down_seconds)
    await here.plane.start_etcd()
    await here.plane.wait_ready()


async def replace_authority(here: World) -> None:
    """The API server gets a certificate of another authority; the bundle of the scheduler is replaced afterwards."""
    authority = here.plane.replace_serving_certificate()
    await restart_api_server(here, number=signal.SIGTERM)
    await trio.sleep(5)
    here.authority.write_bytes(authority)


async def suspend_scheduler(here: World, *, seconds: float) -> None:
    """The scheduler is stopped where it is."""
    here.scheduler.suspend()
    await trio.sleep(seconds)
    here.scheduler.resume()


FAULTS = (
    Fault(name="connections reset for 5 s", inject=partial(reset, seconds=5)),
    Fault(name="connections reset for 30 s", inject=partial(reset, seconds=30)),
    Fault(name="connections reset for 5 s, four times", inject=partial(reset, seconds=5), times=4),
    Fault(name="refused for 5 s, four times", inject=partial(refuse, seconds=5), times=4, fresh=False),
    Fault(name="refused for 30 s", inject=partial(refuse, seconds=30), fresh=False),
    Fault(name="accepted and closed for 10 s", inject=partial(close, seconds=10), fresh=False),
    Fault(name="half-open connections", inject=half_open, limit_seconds=15.0, fresh=False),
    Fault(name="half-open connections, again", inject=half_open, limit_seconds=15.0, fresh=False),
    Fault(name="silent for 10 s, then only new connections work", inject=partial(silence, seconds=10, resume=False)),
    Fault(name="silent for 10 s, then all go on", inject=partial(silence, seconds=10, resume=True)),
    Fault(name="silent for 40 s, then all go on", inject=partial(silence, seconds=40, resume=True), fresh=False),
    Fault(name="cut in the middle of answers for 10 s", inject=partial(cut, after_bytes=6000, seconds=10)),
    Fault(name="up and down for 10 s", inject=partial(flap, seconds=10), fresh=False),
    Fault(name="every piece 300 ms late for 10 s", inject=partial(delay, each=0.3, seconds=10), fresh=False),
    Fault(name="API server restarted", inject=partial(restart_api_server, number=signal.SIGTERM), fresh=False),
    Fault(name="API server killed", inject=partial(restart_api_server, number=signal.SIGKILL), fresh=False),
    Fault(name="API server down for 20 s behind a relay", inject=partial(api_server_away, seconds=20), fresh=False),
    Fault(name="API server hangs for 5 s", inject=partial(suspend_api_server, seconds=5), fresh=False),
    Fault(name="API server hangs for 20 s", inject=partial(suspend_api_server, seconds=20), fresh=False),
    Fault(name="history compacted, API server restarted", inject=lose_history, fresh=False),
    Fault(name="etcd away for 5 s", inject=partial(restart_etcd, down_seconds=5), fresh=False),
    Fault(name="certificate and authority replaced", inject=replace_authority, fresh=False),
    Fault(name="scheduler suspended for 5 s", inject=partial(suspend_scheduler, seconds=5), fresh=False),
)
