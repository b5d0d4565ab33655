"""What readers of the live page cost the scheduler while pods come and are bound, and how much is sent to each."""

import socket
import ssl
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import define, field

from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import SchedulerProcess
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, SimulatedCluster, simulated_cluster
from contrib.control_plane.servers import free_port

NODES = 5_000
PODS_PER_NODE = 10
PODS_PER_SECOND = 500.0
READERS = 10
SECONDS = 15.0
ROUNDS = 3
"""Each without and with readers: the machine's own noise is as large as what they cost."""
SETTLING_SECONDS = 3.0
"""After readers have come, until they have their snapshot."""
CPU_GOAL = 2.0
"""Percent of a core; and of a pod's time to its bind."""
BYTES_GOAL = 50.0
_REQUEST = b"GET /ui/stream HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"


@define(eq=False)
class Reader:
    """A client that reads the stream, and counts."""

    port: int
    received_bytes: int = 0
    first_after_seconds: float = 0.0
    """From the request to the end of the snapshot."""
    _connection: ssl.SSLSocket = field(init=False)

    def start(self) -> None:
        """Begin to read in a thread of its own."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._connection = context.wrap_socket(socket.create_connection(("127.0.0.1", self.port)))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        began = time.monotonic()
        self._connection.sendall(_REQUEST)
        try:
            while received := self._connection.recv(1 << 20):
                if self.received_bytes < 20_000:  # the snapshot comes in one piece after a short one
                    self.first_after_seconds = time.monotonic() - began
                self.received_bytes += len(received)
        except OSError:
            pass  # closed below

    def stop(self) -> None:
        """Go."""
        self._connection.close()


@contextmanager
def readers(port: int, count: int) -> Iterator[list[Reader]]:
    """So many readers, as long as the block runs."""
    found = [Reader(port) for _ in range(count)]
    for one in found:
        one.start()
    try:
        yield found
    finally:
        for one in found:
            one.stop()


def run(node_counts: Sequence[int] = ()) -> Iterator[Figure]:
    """The same pods without and with readers."""
    for nodes in node_counts or (NODES,):
        with simulated_cluster() as cluster:
            cluster.ask("create_nodes", count=nodes)
            cluster.ask("create_running_pods", count=nodes * PODS_PER_NODE)
            port = free_port()
            flags = (f"--secure-port={port}", "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/ui*")
            with cluster.scheduler(*flags) as scheduler:
                scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
                yield from _measure(cluster, scheduler, port, nodes)


def _measure(cluster: SimulatedCluster, scheduler: SchedulerProcess, port: int, nodes: int) -> Iterator[Figure]:
    with readers(port, 1) as (alone,):
        time.sleep(SETTLING_SECONDS)
        case = f"{nodes:,} nodes, {nodes * PODS_PER_NODE:,} pods"
        yield Figure("live page", case, "snapshot received", alone.first_after_seconds * 1e3, "ms", 1000.0)
        yield Figure("live page", case, "snapshot, compressed", alone.received_bytes / 1e3, "KB")
    _cpu(cluster, scheduler)  # what is bound for the first time costs more
    costs, quiet_costs, slower, sent = [], [], [], 0
    for _ in range(ROUNDS):
        without, quiet = _cpu(cluster, scheduler), _cpu_of_seconds(scheduler)
        usual_seconds = _seconds_to_bind(cluster)
        with readers(port, READERS) as reading:
            time.sleep(SETTLING_SECONDS)
            before = sum(one.received_bytes for one in reading)
            costs.append(_cpu(cluster, scheduler) - without)
            slower.append(_seconds_to_bind(cluster) / usual_seconds - 1)
            time.sleep(SETTLING_SECONDS)  # what has changed last is sent a moment later
            sent += sum(one.received_bytes for one in reading) - before
            quiet_costs.append(_cpu_of_seconds(scheduler) - quiet)
    cost, quiet_cost = statistics.median(costs), statistics.median(quiet_costs)
    case = f"{nodes:,} nodes, {PODS_PER_SECOND:g} new pods/s, {READERS} readers"
    yield Figure("live page", case, "CPU of all readers", cost / SECONDS * 100, "% of a core", CPU_GOAL)
    yield Figure("live page", case, "time to bind, more by", statistics.median(slower) * 100, "%", CPU_GOAL)
    yield Figure("live page", case, "sent to each", sent / ROUNDS / READERS / SECONDS / 1e3, "KB/s", BYTES_GOAL)
    case = f"{nodes:,} nodes, no new pods, {READERS} readers"
    yield Figure("live page", case, "CPU of all readers", quiet_cost / SECONDS * 100, "% of a core", CPU_GOAL)


def _seconds_to_bind(cluster: SimulatedCluster) -> float:
    """The median of the pods that came last, from creation to bind."""
    return statistics.median(cluster.ask("seconds_to_bind"))


def _cpu(cluster: SimulatedCluster, scheduler: SchedulerProcess) -> float:
    """Seconds that the scheduler uses while pods come; the readers, if any, use it as long."""
    before, began = scheduler.cpu_seconds(), time.monotonic()
    cluster.ask("create_pods_steadily", per_second=PODS_PER_SECOND, seconds=SECONDS)
    time.sleep(max(0.0, began + SECONDS - time.monotonic()))
    return scheduler.cpu_seconds() - before


def _cpu_of_seconds(scheduler: SchedulerProcess) -> float:
    """Seconds that it uses while nothing happens, in as much time."""
    time.sleep(SETTLING_SECONDS)
    before = scheduler.cpu_seconds()
    time.sleep(SECONDS)
    return scheduler.cpu_seconds() - before
