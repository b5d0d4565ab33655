"""The faults, in the order in which they are made, each with its duration: network, API server, etcd, processes."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from functools import partial

from attrs import frozen

from contrib.faults import connections, preemption, processes, replicas, servers
from contrib.faults.cluster import Cluster

Inject = Callable[[Cluster], Awaitable[float | None]]
LEASE_SECONDS = 18.0
"""A lease lasts for 15 s, and the others look every two or three."""


@frozen(kw_only=True)
class Fault:
    """One row of the table.

    Attributes:
        name: of the row.
        inject: makes the fault, and ends it; returns the seconds until a pod was bound, if it measures that itself.
        times: how often in a row, in the same process.
        fresh: whether the scheduler is started again before.
        quiet: whether nothing else happens in the cluster.
        limit_seconds: the longest recovery that is good enough.
        only_ours: whether there is nothing to compare with: a static executable takes no other clock.
        missing: what this machine lacks for it; empty: nothing.
    """

    name: str
    inject: Inject
    times: int = 1
    fresh: bool = False
    quiet: bool = False
    limit_seconds: float = 1.5
    only_ours: bool = False
    missing: str = ""


_CLOCK = "" if processes.FAKETIME.exists() else "needs libfaketime (Debian's package faketime)"

FAULTS = (
    Fault(name="nothing at all for 4 minutes", inject=partial(connections.quiet, minutes=4), quiet=True, fresh=True),
    Fault(name="connections reset for 5 s", inject=partial(connections.reset, seconds=5), fresh=True),
    Fault(name="connections reset for 30 s", inject=partial(connections.reset, seconds=30), fresh=True),
    Fault(name="reset for 5 s, four times", inject=partial(connections.reset, seconds=5), times=4, fresh=True),
    Fault(name="refused for 5 s, four times", inject=partial(connections.refuse, seconds=5), times=4),
    Fault(name="refused for 30 s", inject=partial(connections.refuse, seconds=30)),
    Fault(name="refused for 90 s", inject=partial(connections.refuse, seconds=90)),
    Fault(name="accepted and closed for 10 s", inject=partial(connections.close, seconds=10)),
    Fault(name="half-open, quiet cluster", inject=connections.half_open, limit_seconds=16, quiet=True, fresh=True),
    Fault(name="half-open, pods come and go", inject=connections.half_open, limit_seconds=16),
    Fault(
        name="all silent for 10 s, later only new connections work",
        inject=partial(connections.silence, seconds=10, resume=False),
        limit_seconds=6,  # sixteen from the beginning of the silence
    ),
    Fault(name="all silent for 10 s", inject=partial(connections.silence, seconds=10, resume=True)),
    Fault(name="all silent for 40 s", inject=partial(connections.silence, seconds=40, resume=True)),
    Fault(name="no answers for 10 s", inject=partial(connections.half_closed, seconds=10)),
    Fault(name="cut after 6000 bytes for 10 s", inject=partial(connections.cut, after_bytes=6000, seconds=10)),
    Fault(name="cut after 100 bytes for 10 s", inject=partial(connections.cut, after_bytes=100, seconds=10)),
    Fault(name="up and down for 10 s", inject=partial(connections.flap, seconds=10)),
    Fault(name="up and down for 40 s", inject=partial(connections.flap, seconds=40)),
    Fault(name="300 ms late for 10 s", inject=partial(connections.delay, each=0.3, seconds=10)),
    Fault(name="512 bytes every 50 ms for 10 s", inject=partial(connections.trickle, seconds=10)),
    Fault(name="random bytes in place of TLS for 5 s", inject=partial(connections.garbage, seconds=5)),
    Fault(name="pods and a node deleted while cut off", inject=connections.deleted_meanwhile),
    Fault(name="pods bound by others while cut off", inject=connections.bound_meanwhile),
    Fault(name="API server restarted", inject=partial(servers.restart_api_server, number=signal.SIGTERM)),
    Fault(
        name="API server killed, three times",
        inject=partial(servers.restart_api_server, number=signal.SIGKILL),
        times=3,
    ),
    Fault(name="API server down for 20 s behind a relay", inject=partial(servers.api_server_away, seconds=20)),
    Fault(name="API server suspended for 5 s", inject=partial(servers.suspend_api_server, seconds=5)),
    Fault(name="API server suspended for 20 s", inject=partial(servers.suspend_api_server, seconds=20)),
    Fault(name="history compacted and restarted (410)", inject=servers.lose_history, times=2),
    Fault(name="etcd killed, away for 5 s", inject=partial(servers.restart_etcd, down_seconds=5)),
    Fault(name="etcd suspended for 8 s", inject=partial(servers.suspend_etcd, seconds=8)),
    Fault(name="throttled: 429 for 8 s", inject=partial(servers.throttle, seconds=8)),
    Fault(name="forbidden: no role for 8 s", inject=partial(servers.forbid, seconds=8)),
    Fault(name="certificate replaced, its authority 5 s later", inject=servers.replace_authority),
    Fault(name="authority replaced, then the certificate", inject=servers.authority_first),
    Fault(name="certificate replaced, its authority in pieces", inject=servers.bundle_in_pieces),
    Fault(name="token revoked early, replaced 5 s later", inject=servers.revoke_token),
    Fault(name="authority of clients replaced, certificate 3 s later", inject=servers.replace_client_authority),
    Fault(name="scheduler suspended for 5 s", inject=partial(processes.suspend, seconds=5)),
    Fault(name="scheduler suspended for 60 s", inject=partial(processes.suspend, seconds=60)),
    Fault(name="suspended between a bind and its response", inject=processes.suspend_in_bind),
    Fault(
        name="ended with 200 pods waiting, start included",
        inject=partial(processes.killed_with_backlog, number=signal.SIGTERM),
        limit_seconds=5,
    ),
    Fault(name="killed in the middle of binds, start included", inject=processes.killed_in_binds, limit_seconds=5),
    Fault(name="64 files, 100 silent clients", inject=processes.few_files),
    Fault(name="a log pipe that nobody reads", inject=processes.unread_log),
    Fault(name="log truncated", inject=processes.truncated_log),
    Fault(
        name="clock an hour ahead",
        inject=partial(processes.jump, by_seconds=3600),
        only_ours=True,
        missing=_CLOCK,
    ),
    Fault(
        name="clock an hour back",
        inject=partial(processes.jump, by_seconds=-3600),
        only_ours=True,
        missing=_CLOCK,
    ),
    Fault(
        name="leader ends",
        inject=partial(replicas.leader_ends, number=signal.SIGTERM),
        limit_seconds=4,
    ),
    Fault(
        name="leader killed",
        inject=partial(replicas.leader_ends, number=signal.SIGKILL),
        limit_seconds=LEASE_SECONDS,
    ),
    Fault(name="leader suspended, goes on later", inject=replicas.leader_suspended, limit_seconds=LEASE_SECONDS),
    Fault(name="leader cut off", inject=replicas.leader_cut_off, limit_seconds=LEASE_SECONDS),
    Fault(
        name="replicas killed and suspended at random for 60 s",
        inject=partial(replicas.killed_and_suspended, seconds=60),
        limit_seconds=LEASE_SECONDS,
    ),
    Fault(name="victims of preemption in twelve full clusters", inject=preemption.victims, quiet=True),
)
