"""How long a running scheduler takes to explain a pod, and what pods that are bound meanwhile notice of it."""

import http.client
import ssl
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import define, field

from contrib.benchmarks.report import Figure
from contrib.benchmarks.simulated_cluster import TIMEOUT_SECONDS, SimulatedCluster, simulated_cluster
from contrib.control_plane.servers import free_port

NODES = 5_000
PODS_PER_NODE = 10
PODS_PER_SECOND = 200.0
SECONDS = 20.0
ROUNDS = 3
"""Rounds without and with questions, whose medians count: what else the machine does makes pods late, too."""
PAUSE_SECONDS = 0.5
"""Between an answer and the next question."""
SETTLING_SECONDS = 1.0
"""After the last pod was created, until it is bound."""
_GOAL_SECONDS = 0.5
_GOAL_RATIO = 1.2
_TYPE = "one-in-ten-too-large"


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@define(eq=False)
class Asker:
    """Asks why a pod is pending, one question after the other."""

    port: int
    pod: str
    seconds: list[float] = field(factory=list)
    _context: ssl.SSLContext = field(factory=_trusting, init=False)
    """Made once: reading the system's certificates for each question takes what the scheduler needs."""
    _ends: threading.Event = field(factory=threading.Event)

    def ask(self) -> None:
        """Ask once.

        Raises:
            SystemExit: the answer is none.
        """
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self._context, timeout=60)
        connection.connect()
        began = time.monotonic()
        connection.request("GET", f"/debug/scheduler/explain?pod=default/{self.pod}")
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or b"InsufficientCPU" not in body:
            raise SystemExit(f"no explanation of {self.pod}: {answer.status} {body[:200]!r}")
        self.seconds.append(time.monotonic() - began)
        connection.close()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask again and again while the block runs."""
        self._ends.clear()
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()

    def _run(self) -> None:
        while not self._ends.wait(PAUSE_SECONDS):
            self.ask()


def run(node_counts: Sequence[int] = ()) -> Iterator[Figure]:
    """The same pods with and without questions."""
    for nodes in node_counts or (NODES,):
        with simulated_cluster() as cluster:
            cluster.ask("create_nodes", count=nodes)
            running = nodes * PODS_PER_NODE
            cluster.ask("create_running_pods", count=running)
            port = free_port()
            flags = (f"--secure-port={port}", "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/debug/*")
            with cluster.scheduler(*flags) as scheduler:
                scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
                cluster.ask("create_pods", count=10, type=_TYPE)
                scheduler.wait_until_idle(timeout_seconds=TIMEOUT_SECONDS)
                yield from _measure(cluster, Asker(port, f"pod-{running + 9:06}"), f"{nodes:,} nodes, {running:,} pods")


def _measure(cluster: SimulatedCluster, asker: Asker, case: str) -> Iterator[Figure]:
    asker.ask()  # what is imported and made for the first answer
    _seconds_to_bind(cluster)
    asker.seconds.clear()
    nobody_asks, somebody_asks = [], []
    for _ in range(ROUNDS):
        nobody_asks.append(_p99(_seconds_to_bind(cluster)))
        with asker.asking():
            somebody_asks.append(_p99(_seconds_to_bind(cluster)))
    without, with_questions = statistics.median(nobody_asks), statistics.median(somebody_asks)
    yield Figure("explanations", case, "median time of an answer", statistics.median(asker.seconds), "s", _GOAL_SECONDS)
    yield Figure("explanations", case, "answers", len(asker.seconds), "")
    case += f", {PODS_PER_SECOND:g} new pods/s"
    yield Figure("explanations", case, "p99 of time to bind, nobody asks", without * 1e3, "ms")
    yield Figure("explanations", case, "p99 of time to bind, somebody asks", with_questions * 1e3, "ms")
    yield Figure("explanations", case, "ratio of both", with_questions / without, "", _GOAL_RATIO)


def _seconds_to_bind(cluster: SimulatedCluster) -> list[float]:
    cluster.ask("create_pods_steadily", per_second=PODS_PER_SECOND, seconds=SECONDS)
    time.sleep(SETTLING_SECONDS)
    found: list[float] = sorted(cluster.ask("seconds_to_bind"))
    return found


def _p99(found: list[float]) -> float:
    return found[int(0.99 * (len(found) - 1))]
