"""The simulator in a process of its own, over TLS, remote-controlled by lines on standard input.

``pods COUNT SHAPES`` creates pods in process, ``bound`` prints how many pods have a node.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

import trio

from contrib.benchmarks.workload import constrained_pod, node
from trio_sched.simulator import ApiServer, serve, wall_clock

JSON = {"content-type": "application/json"}


async def main(folder: Path, nodes: int) -> None:
    server = ApiServer(now=wall_clock)
    for i in range(nodes):
        await _create(server, "/api/v1/nodes", node(i))
    async with trio.open_nursery() as nursery:
        address = await nursery.start(
            partial(serve, server, certificate=folder / "server.pem", private_key=folder / "server.key")
        )
        print(address, flush=True)
        await _run_commands(server)
        nursery.cancel_scope.cancel()


async def _create(server: ApiServer, collection: str, manifest: dict[str, object]) -> None:
    reply = await server.handle("POST", collection, "", JSON, json.dumps(manifest).encode())
    assert reply.status == 201, reply.body


async def _run_commands(server: ApiServer) -> None:
    waiting = b""
    async with trio.lowlevel.FdStream(os.dup(0)) as commands:
        while data := await commands.receive_some():
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                words = line.decode().split()
                if words[0] == "pods":
                    count, shapes = map(int, words[1:3])
                    for i in range(count):
                        await _create(
                            server, "/api/v1/namespaces/default/pods", constrained_pod(i, i % shapes, words[3])
                        )
                        if i % 10 == 9:
                            await trio.lowlevel.checkpoint()
                    print("created", flush=True)
                elif words[0] == "bound":
                    reply = await server.handle("GET", "/api/v1/pods", "fieldSelector=spec.nodeName%21%3D", {}, b"")
                    print(len(json.loads(reply.body)["items"]), flush=True)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
