"""What a hot POST costs the client: over TLS, to a server in another process, 32 in flight."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import trio

from contrib.benchmarks.loopback import certificates, server_process
from contrib.benchmarks.report import Figure
from trio_sched.kube_client.binding import bind
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings

REQUESTS = 8_000
IN_FLIGHT = 32


def run() -> Iterator[Figure]:
    with certificates() as folder, server_process("contrib.benchmarks.loopback", str(folder)) as (_, address):
        binds, through_httpx = trio.run(_measure, address, folder)
    yield Figure("transport", f"{IN_FLIGHT} in flight, TLS", "bind", binds, "µs CPU", 250.0)
    yield Figure("transport", f"{IN_FLIGHT} in flight, TLS", "the same through httpx", through_httpx, "µs CPU")


async def _measure(address: str, folder: Path) -> tuple[float, float]:
    settings = ConnectionSettings(server=address, tls=TlsSettings(ca_file=str(folder / "ca.pem")), token="t" * 900)
    async with connect(settings, qps=-1) as client:

        async def one_bind(i: int) -> None:
            await bind(client, namespace="default", name=f"pod-{i:06}", uid=f"uid-{i:06}", node=f"node-{i % 1000:05}")

        async def one_post(i: int) -> None:
            response = await client.http.post(
                f"/api/v1/namespaces/default/pods/pod-{i}/binding",
                content=b"{}",
                headers={"Content-Type": "application/json"},
            )
            assert response.status_code == 201

        return await _cpu_per_call(one_bind, REQUESTS), await _cpu_per_call(one_post, REQUESTS // 8)


async def _cpu_per_call(call: object, count: int) -> float:
    async def worker(numbers: Iterator[int]) -> None:
        for i in numbers:
            await call(i)  # type: ignore[operator]

    async def round_of(calls: int) -> None:
        numbers = iter(range(calls))
        async with trio.open_nursery() as nursery:
            for _ in range(IN_FLIGHT):
                nursery.start_soon(partial(worker, numbers))

    await round_of(count // 8)
    began = time.process_time()
    await round_of(count)
    return (time.process_time() - began) / count * 1e6
