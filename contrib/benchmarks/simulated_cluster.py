"""The simulator in another process, as a benchmark uses it: asks for objects, and what has become of them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from attrs import define, frozen

from contrib.benchmarks.loopback import certificates, server_process
from contrib.benchmarks.scheduler_process import (
    SchedulerProcess,
    scheduler_process,
    write_configuration,
    write_kubeconfig,
)

TIMEOUT_SECONDS = 600.0


@frozen
class Binds:
    """How many pods have been bound, and when the first and the last of them were, on the clock ``time.monotonic``."""

    count: int
    first_at: float
    last_at: float


@define(eq=False)
class SimulatedCluster:
    """A cluster on an API server in another process; made by :func:`simulated_cluster`."""

    folder: Path
    server: subprocess.Popen[str]

    def ask(self, command: str, **arguments: object) -> Any:
        """Call a command of ``simulated_server``; returns its answer when it is done."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self.server.stdin.flush()
        line = self.server.stdout.readline()
        if not line:
            raise SystemExit(f"the simulated API server ended while it carried out {command!r}")
        return json.loads(line)

    @contextmanager
    def scheduler(self, *flags: str, profile: Mapping[str, Any] | None = None) -> Iterator[SchedulerProcess]:
        """trio-sched with more *flags* and a *profile* other than the default, connected to this cluster."""
        config = write_configuration(self.folder, self.folder / "kubeconfig", profile)
        with scheduler_process(config, self.folder / "scheduler.log", flags=flags) as scheduler:
            yield scheduler

    @contextmanager
    def replicas(self, count: int, shards: int) -> Iterator[list[SchedulerProcess]]:
        """So many processes, once all *shards* are shared out evenly; 0 shards: the process shares nothing."""
        config = write_configuration(self.folder, self.folder / "kubeconfig", shards=shards)
        logs = [self.folder / f"scheduler-{number}.log" for number in range(count)]
        with ExitStack() as stack:
            started = [stack.enter_context(scheduler_process(config, log)) for log in logs]
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while not self.ask("are_shared_out", shards=shards, replicas=count):
                for one in started:
                    one.check_running()
                if time.monotonic() > deadline:
                    raise SystemExit(f"the shards were not shared out within {TIMEOUT_SECONDS:.0f} s")
                time.sleep(0.1)
            for one in started:
                one.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
            yield started

    def wait_bound(self, count: int, scheduler: SchedulerProcess) -> Binds:
        """Wait until *count* pods have been bound since the server started."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            binds = Binds(*self.ask("wait_bound", count=count, seconds=1.0))
            if binds.count >= count:
                return binds
            scheduler.check_running()
            if time.monotonic() > deadline:
                raise SystemExit(f"{binds.count} of {count} pods were bound within {TIMEOUT_SECONDS:.0f} s")

    def cpu_until_last_event(self, count: int, scheduler: SchedulerProcess) -> float:
        """CPU seconds of *scheduler* when *count* pods have been bound and the last event about it has arrived."""
        self.wait_bound(count, scheduler)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self.ask("wait_events", count=count, seconds=1.0) < count:
            scheduler.check_running()
            if time.monotonic() > deadline:
                raise SystemExit(f"not all events about {count} pods were sent within {TIMEOUT_SECONDS:.0f} s")
        return scheduler.cpu_seconds()


@contextmanager
def simulated_cluster(*server_flags: str) -> Iterator[SimulatedCluster]:
    """An empty cluster, gone when the block is left."""
    with (
        certificates() as folder,
        server_process("contrib.benchmarks.simulated_server", str(folder), *server_flags) as (server, address),
    ):
        write_kubeconfig(folder / "kubeconfig", server=address, authority=folder / "ca.pem", token="benchmark")
        yield SimulatedCluster(folder, server)
