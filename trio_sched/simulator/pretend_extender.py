"""An extender with configured answers: the webhook at the other end of ``extenders`` in a configuration.

In this process it is reached through an ``ExtenderTransport``; ``serve_extender`` puts it on a port.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import httpx
import trio
from attrs import define, field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.serve import Receive, Scope, Send, configuration, live, read_body

if TYPE_CHECKING:
    from hypercorn.typing import Framework

Answer = Any
"""Bytes to send as they are, anything else to send as JSON; or a function of the request that gives one of these."""


@frozen(eq=False)
class Asked:
    """One request."""

    verb: str
    request: Json
    at: float
    """When it was received, in ``trio.current_time()``."""

    @property
    def pod(self) -> str:
        """The name of the pod that it was about."""
        name: str = self.request["Pod"]["metadata"]["name"] if "Pod" in self.request else self.request["PodName"]
        return name

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes that it was about, however they were given."""
        if self.request.get("NodeNames") is not None:
            return list(self.request["NodeNames"])
        return [node["metadata"]["name"] for node in self.request["Nodes"]["items"]]


@define(eq=False)
class PretendExtender:
    """Answers verbs; every attribute can be changed at any time.

    Attributes:
        url: its ``urlPrefix``.
        answers: by verb; a verb that is not here is not found (404).
        delay_seconds: how long each answer takes.
        status: the HTTP status of every answer.
        is_dead: connections are refused.
        asked: every request so far.
        most_at_once: the highest number of concurrent requests so far.
    """

    url: str = "http://extender.test"
    answers: Mapping[str, Answer] = field(factory=dict)
    delay_seconds: float = 0.0
    status: int = 200
    is_dead: bool = False
    asked: list[Asked] = field(factory=list, init=False)
    most_at_once: int = field(default=0, init=False)
    _in_hand: int = field(default=0, init=False)

    async def handle(self, verb: str, body: bytes) -> tuple[int, bytes]:
        """The status and body of its answer."""
        asked = Asked(verb, json.loads(body), trio.current_time())
        self.asked.append(asked)
        self._in_hand += 1
        self.most_at_once = max(self.most_at_once, self._in_hand)
        try:
            await trio.sleep(self.delay_seconds)
            if verb not in self.answers:
                return 404, b"404 page not found\n"
            answer = self.answers[verb]
            if callable(answer):
                answer = answer(asked)
            if inspect.isawaitable(answer):
                answer = await answer
        finally:
            self._in_hand -= 1
        return self.status, answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def asked_about(self, verb: str) -> list[str]:
        """The pods that *verb* was called for, in that order."""
        return [asked.pod for asked in self.asked if asked.verb == verb]


def leaving(fits: Callable[[str], bool], reason: str = "") -> Callable[[Asked], Json]:
    """An answer to filter: the nodes whose names *fits* accepts are left, the others fail for *reason*, if any."""

    def answer(asked: Asked) -> Json:
        left = [name for name in asked.nodes if fits(name)]
        failed = {name: reason for name in asked.nodes if not fits(name)} if reason else None
        if asked.request.get("NodeNames") is not None:
            return {"NodeNames": left, "FailedNodes": failed}
        items = [node for node in asked.request["Nodes"]["items"] if node["metadata"]["name"] in left]
        return {"Nodes": {"metadata": {}, "items": items}, "FailedNodes": failed}

    return answer


def scoring(scores: Mapping[str, int]) -> Callable[[Asked], list[Json]]:
    """An answer to prioritize: these scores, 0 for all other nodes."""
    return lambda asked: [{"Host": name, "Score": scores.get(name, 0)} for name in asked.nodes]


@define(eq=False)
class ExtenderTransport(httpx.AsyncBaseTransport):
    """Carries requests to extenders in this process, each under its URL."""

    extenders: Iterable[PretendExtender]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request; without an extender at the URL, or with a dead one, the connection is refused."""
        body = await request.aread()
        await trio.lowlevel.checkpoint()
        for extender in self.extenders:
            at = httpx.URL(extender.url)
            if (at.host, at.port or 80) == (request.url.host, request.url.port or 80) and not extender.is_dead:
                verb = request.url.path.removeprefix(at.path.rstrip("/")).lstrip("/")
                status, answer = await extender.handle(verb, body)
                return httpx.Response(status, content=answer, request=request)
        address = f"{request.url.host}:{request.url.port or 80}"
        raise httpx.ConnectError(f"dial tcp {address}: connect: connection refused", request=request)


async def serve_extender(
    extender: PretendExtender,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: Path | None = None,
    private_key: Path | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer on a port; never returns.

    Args:
        extender: answers the requests.
        host: the address to listen on.
        port: 0 lets the system choose one.
        certificate: a PEM file that makes this HTTPS; without one it is plain HTTP.
        private_key: the PEM file of its key.
        task_status: started with the URL once connections are accepted.
    """
    from hypercorn.trio import serve as hypercorn_serve  # as in `serve`

    application = cast("Framework", partial(_application, extender))
    config = configuration(host, port, certificate, private_key)
    async with trio.open_nursery() as nursery:
        run = partial(hypercorn_serve, application, config, mode="asgi", shutdown_trigger=trio.sleep_forever)
        (url, *_) = await nursery.start(run)
        task_status.started(url)


async def _application(extender: PretendExtender, scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application: *extender* on the other side of Hypercorn."""
    if scope["type"] == "lifespan":
        await live(receive, send)
        return
    status, body = await extender.handle(scope["path"].rpartition("/")[2], await read_body(receive))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
