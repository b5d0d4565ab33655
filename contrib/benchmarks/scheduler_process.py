"""A scheduler in a process of its own: how to start it, and what it has used."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

TRIO_SCHED = (sys.executable, "-m", "trio_sched")
SYNCED = b"Handlers synced"
POLL_SECONDS = 0.01
RETRY_PERIOD = "2s"
"""How often replicas that share the work look at the leases."""
IDLE_SECONDS = 1.5
"""So long without work means that there is none; some waits of the start take a second."""


def write_configuration(
    folder: Path, kubeconfig: Path, profile: Mapping[str, Any] | None = None, *, shards: int = 0
) -> Path:
    """The configuration that every scheduler under test runs with: no election, and no throttling of requests.

    Without *profile* it is the default one; with *shards* replicas share the work, for which they need an election.
    """
    path = folder / "scheduler.yaml"
    connection = {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": bool(shards), "retryPeriod": RETRY_PERIOD},
        **({"sharding": {"shards": shards}} if shards else {}),
        **({"profiles": [profile]} if profile else {}),
    }
    path.write_text(json.dumps(configuration))
    return path


def write_kubeconfig(
    path: Path,
    *,
    server: str,
    authority: Path,
    token: str,
    token_file: Path | None = None,
    client_certificate: tuple[Path, Path] | None = None,
) -> None:
    """A kubeconfig for a server with a certificate of *authority*.

    Args:
        path: of the file.
        server: the URL.
        authority: the file with its certificate.
        token: a bearer token; empty for none.
        token_file: a file with one.
        client_certificate: the files of certificate and key.
    """
    user = {"token": token} if token else {}
    if token_file is not None:
        user["tokenFile"] = str(token_file)
    if client_certificate is not None:
        user["client-certificate"], user["client-key"] = map(str, client_certificate)
    cluster = {"server": server, "certificate-authority": str(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(document))


@define(eq=False)
class SchedulerProcess:
    """A running scheduler; its log goes to a file, so that no full pipe can stop it."""

    process: subprocess.Popen[bytes]
    log_file: Path
    started_at: float = field(factory=time.monotonic, init=False)

    def cpu_seconds(self) -> float:
        """What all its threads have used."""
        # As clock_getcpuclockid(3) computes the id of the clock; /proc/PID/stat counts in ticks of 10 ms.
        try:
            return time.clock_gettime((~self.process.pid << 3) | 2)
        except OSError as gone:
            raise self._ended() from gone

    def busy_seconds(self) -> float:
        """For how long its main thread has run, or waited for a core to run on."""
        try:
            ran, waited, _times = Path(f"/proc/{self.process.pid}/schedstat").read_text().split()
        except OSError as gone:
            raise self._ended() from gone
        return (int(ran) + int(waited)) / 1e9

    def peak_mib(self) -> float:
        """The most memory that it has had."""
        return self._memory_mib("VmHWM:")

    def memory_mib(self) -> float:
        """The memory that it has."""
        return self._memory_mib("VmRSS:")

    def check_running(self) -> None:
        """End the benchmark if the scheduler has ended."""
        if self.process.poll() is not None:
            raise self._ended()

    def wait_synced(self, *, timeout_seconds: float) -> float:
        """Wait until trio-sched logs that its caches are filled; seconds since its start.

        Log lines wait for others for a tenth of a second.
        """
        deadline = time.monotonic() + timeout_seconds
        while SYNCED not in self.log_file.read_bytes():
            self.check_running()
            if time.monotonic() > deadline:
                raise self.failure(f"the scheduler was not ready within {timeout_seconds:.0f} s")
            time.sleep(POLL_SECONDS)
        return time.monotonic() - self.started_at

    def wait_until_idle(self, *, timeout_seconds: float) -> None:
        """Wait until its caches are filled and it has stopped using the processor."""
        self.wait_synced(timeout_seconds=timeout_seconds)
        busy_at, last = time.monotonic(), self.cpu_seconds()
        while time.monotonic() - busy_at < IDLE_SECONDS:
            time.sleep(0.1)
            now = self.cpu_seconds()
            if now - last > 0.01:
                busy_at = time.monotonic()
            last = now

    def _memory_mib(self, name: str) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
        raise self._ended()

    def failure(self, what: str) -> SystemExit:
        """The end of the benchmark, with the last lines of the log."""
        lines = self.log_file.read_text(errors="replace").splitlines()[-5:]
        return SystemExit("\n".join([f"{what}:", *lines]))

    def _ended(self) -> SystemExit:
        return self.failure(f"the scheduler ended with exit code {self.process.poll()}")


@contextmanager
def scheduler_process(
    config: Path, log_file: Path, *, command: Sequence[str] = TRIO_SCHED, flags: Sequence[str] = ()
) -> Iterator[SchedulerProcess]:
    """Start *command* with *config* and *flags*; it is gone when the block is left."""
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--config={config}", "--secure-port=0", "--vmodule=supervisor=3", *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield SchedulerProcess(process, log_file)
    finally:
        process.terminate()
        process.wait()
