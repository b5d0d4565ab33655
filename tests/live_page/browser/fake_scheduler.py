"""Serves the live page with a synthetic scheduler behind it, to try the page alone.

``python -m tests.live_page.browser.fake_scheduler --nodes 5000 --pods 50000 --rate 500`` serves it until interrupted.
"""

import argparse
import json
import mimetypes
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import trio
import trustme
from attrs import define, field

from tests.live_page.browser.synthetic_cluster import HOSTILE, Message, SyntheticCluster
from tests.support.network.raw_server import Exchange, RawServer

STEP_SECONDS: Final = 1 / 3
_STATIC: Final = files("trio_sched") / "live_page" / "static"
_HEADERS: Final = (
    "Cache-Control: no-cache, private\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'\r\n"
)


@define(eq=False)
class FakeScheduler:
    """Answers under *prefix* as a scheduler does; the stream has a delta every *step_seconds*."""

    cluster: SyntheticCluster
    prefix: str = ""
    step_seconds: float = STEP_SECONDS
    refused: int = 0
    """A status that all but the page itself is refused with; 0 if it is not."""
    timeline: Message | None = None
    asked: list[tuple[str, dict[str, str]]] = field(factory=list, init=False)
    """The paths and queries that were answered."""
    _streams: list[trio.abc.Stream] = field(factory=list, init=False)

    def server(self) -> RawServer:
        """The server, over HTTP."""
        return RawServer(self._answer, trustme.CA(), is_tls=False)

    async def disconnect(self) -> None:
        """End all streams, as a restart does."""
        for stream in self._streams:
            await trio.aclose_forcefully(stream)
        self._streams.clear()

    async def _answer(self, exchange: Exchange) -> None:
        url = urlsplit(exchange.request.target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        path = url.path.removeprefix(self.prefix)
        if self.refused and path in ("/ui/stream", *_PAGES):
            await _json(exchange, {}, self.refused)
        elif path == "/ui/stream":
            await self._stream(exchange)
        elif path == "/ui":
            await _file(exchange, "page.html")
        elif path in _PAGES:
            self.asked.append((path, query))
            answer = _PAGES[path](self, query)
            await _json(exchange, answer, 404 if "error" in answer else 200)
        else:
            await _file(exchange, path.removeprefix("/ui/"))

    async def _stream(self, exchange: Exchange) -> None:
        self._streams.append(exchange.stream)
        await exchange.raw(f"HTTP/1.1 200 OK\r\n{_HEADERS}Content-Type: text/event-stream\r\n\r\n".encode())
        await exchange.raw(b"retry: 500\n\n")
        await self._send(exchange, "snapshot", self._snapshot())
        while True:
            await trio.sleep(self.step_seconds)
            if self.cluster.rate and self.timeline is None:
                await self._send(exchange, "delta", self.cluster.step(self.step_seconds))

    def _snapshot(self) -> Message:
        return self.cluster.snapshot() | ({"timeline": self.timeline} if self.timeline else {})

    async def _send(self, exchange: Exchange, event: str, message: Message) -> None:
        await exchange.raw(f"event: {event}\nid: {self.cluster.sequence}\ndata: {_dumped(message)}\n\n".encode())

    def node(self, query: dict[str, str]) -> Message:
        return self.cluster.node(query["name"]) or {"error": f"there is no node {query['name']!r}"}

    def pods(self, query: dict[str, str]) -> Message:
        return self.cluster.pods(query["query"], int(query["limit"]))

    def history(self, query: dict[str, str]) -> Message:
        return self.cluster.history()

    def pod(self, query: dict[str, str]) -> Message:
        return explanation(f"{query['namespace']}/{query['name']}")

    def frame(self, query: dict[str, str]) -> Message:
        self.cluster.step(1.0)
        return self._snapshot() | {"time": float(query["time"])}


_PAGES: Final = {
    "/ui/node": FakeScheduler.node,
    "/ui/pod": FakeScheduler.pod,
    "/ui/pods": FakeScheduler.pods,
    "/ui/history": FakeScheduler.history,
    "/ui/frame": FakeScheduler.frame,
}


def explanation(pod: str) -> Message:
    """An explanation as docs/reference/explanation.schema.json has it, with markup in its texts."""
    clause = {
        "reason": "InsufficientMemory",
        "title": "requests memory 48Gi",
        "plugin": "NodeResourcesFit",
        "pass": 12,
        "passWithoutItAlone": 7,
        "cause": f"node-general-00003 has 12Gi left, {HOSTILE}",
        "details": ["the most that is free on one node is 41Gi"],
        "problems": [],
    }
    selector = clause | {"reason": "NodeSelector", "title": "nodeSelector disk=ssd", "plugin": "NodeAffinity"}
    remedy = {
        "title": "uncordon node-general-00007",
        "node": "node-general-00007",
        "touches": "Node",
        "evicts": [],
        "notes": ["the node has been cordoned for 3 d"],
        "edits": [],
        "commands": ["kubectl uncordon node-general-00007"],
    }
    smaller = remedy | {
        "title": f"request memory 41Gi in place of 48Gi {HOSTILE}",
        "touches": "PodRecreated",
        "notes": [],
        "commands": [
            "kubectl -n shop set resources deployment/cart --requests=memory=41Gi",
            "kubectl rollout status x",
        ],
    }
    return {
        "pod": pod,
        "node": None,
        "schedulerName": "default-scheduler",
        "workload": {"kind": "Deployment", "name": "cart"},
        "waiting": {
            "state": "unschedulable",
            "attempts": 4,
            "pendingSeconds": 752.0,
            "againInSeconds": 41.0,
            "ahead": 3,
            "details": [],
            "history": ["12:04:11 after NodeAdd: 0/60 nodes are available"],
        },
        "events": ["a node is added or its allocatable memory grows"],
        "cause": {
            "text": "No node has 48Gi of memory left among those with the label disk=ssd.",
            "reasons": ["InsufficientMemory"],
            "clauses": [clause["title"]],
            "fitsNow": None,
            "mayEvict": [],
        },
        "nodes": 60,
        "passing": 0,
        "funnel": [],
        "clauses": [clause, selector],
        "groups": [],
        "remedies": [remedy, smaller],
        "tried": ["another zone"],
        "triedAll": True,
        "onNodes": [],
        "scores": [],
        "notes": ["Extenders were not asked."],
    }


async def _file(exchange: Exchange, name: str) -> None:
    file = _STATIC / name
    if "/" in name or not file.is_file():
        await _json(exchange, {"error": f"no file {name!r}"}, 404)
        return
    kind = mimetypes.guess_type(name)[0]
    await exchange.answer(file.read_bytes(), headers=f"{_HEADERS}Content-Type: {kind}; charset=utf-8\r\n")


async def _json(exchange: Exchange, answer: Message, status: int) -> None:
    headers = f"{_HEADERS}Content-Type: application/json\r\n"
    await exchange.answer(_dumped(answer).encode(), status=status, headers=headers)


def _dumped(message: Any) -> str:
    return json.dumps(message, separators=(",", ":"))


async def _serve(fake: FakeScheduler) -> None:
    async with trio.open_nursery() as nursery:
        server = fake.server()
        await nursery.start(server.serve)
        print(f"{server.url}/ui", flush=True)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--pods", type=int, default=1200)
    parser.add_argument("--pending", type=int, default=300)
    parser.add_argument("--rate", type=float, default=20.0, help="pods that are bound per second")
    parser.add_argument("--calm", action="store_true", help="nothing is wrong with the nodes")
    options = parser.parse_args()
    cluster = SyntheticCluster(options.nodes, options.pods, options.pending, options.rate, not options.calm)
    trio.run(_serve, FakeScheduler(cluster))


if __name__ == "__main__":
    main()
