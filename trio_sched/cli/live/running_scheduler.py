"""Asks a running trio-sched to explain pods: on its own caches, with its configuration, plugins and history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec
from attrs import evolve

from trio_sched.errors import TrioSchedError, first_leaf
from trio_sched.explanation.text import explanation_text
from trio_sched.go.errors import UNTRUSTED
from trio_sched.go.text import printable, shortened
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.errors import KubeClientError
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulation.asked_pods import Name, NoSuchPod
from trio_sched.simulation.explaining import Answer, Answers

_PAGE: Final = "/debug/scheduler/explain"
_NO_PAGE: Final = "404 page not found"
_TRUST: Final = "Name its certificate authorities with --from-ca; --from-insecure does not check them."
_UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What writing an explanation raises whose data are of another shape."""


class NotExplained(TrioSchedError):
    """What answers is no trio-sched, or it gives no explanation."""


def scheduler_connection(
    url: str, user: ConnectionSettings, *, ca_file: Path | None, insecure: bool
) -> ConnectionSettings:
    """How the scheduler at *url* is reached with the credentials of *user*.

    Args:
        url: scheme, host and port.
        user: the connection to the API server.
        ca_file: certificate authorities of the scheduler; None: those of the system.
        insecure: whether its certificate is not checked.

    Raises:
        NotExplained: *url* is none.
    """
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme == "https" and bool(parts.hostname) and parts.path in ("", "/") and parts.port != 0
    except ValueError:  # a port that is no number, an address in half a pair of brackets
        is_whole = False
    if not is_whole or parts.query or parts.fragment or parts.username is not None:
        raise NotExplained(f"--from {shortened(printable(url))}: write https://HOST:PORT, of a running trio-sched")
    trust = evolve(user.tls, ca_data=b"", ca_file=str(ca_file or ""), server_name="", insecure_skip_verify=insecure)
    return evolve(user, server=f"https://{parts.netloc}", tls=trust)


@contextmanager
def hint_about_trust() -> Iterator[None]:
    """Have errors say what to do if the certificate of the scheduler is not trusted."""
    try:
        yield
    except* KubeClientError as group:
        problem = first_leaf(group)
        if UNTRUSTED in str(problem):
            problem.hint = _TRUST
        raise


async def explain_there(connection: ConnectionSettings, names: Sequence[Name], nodes: Sequence[str]) -> Answers:
    """The explanations of the scheduler that *connection* leads to.

    Args:
        connection: as `scheduler_connection` gives it.
        names: pods.
        nodes: nodes to answer for.

    Raises:
        NoSuchPod: the scheduler knows no such pod.
        NotExplained: it refuses, or is no trio-sched.
        KubeClientError: it cannot be reached.
    """
    answers = Answers()
    async with connect(connection, component="explain", qps=-1) as client:
        for name in names:
            query = [f"pod={quote(f'{name.namespace}/{name.name}', safe='')}"]
            query += [f"node={quote(node, safe='')}" for node in nodes]
            reply = await client.request(b"GET", f"{_PAGE}?{'&'.join(query)}".encode())
            if reply.status != 200:
                raise _refused(connection.server, name, reply.status, reply.body)
            data = _explanation(connection.server, reply.body)
            answers.answers.append(Answer(explanation=data, pods=(str(data["pod"]),)))
    return answers


def _refused(server: str, name: Name, status: int, body: bytes) -> TrioSchedError:
    text = shortened(printable(body.decode("utf-8", "replace").strip()))
    if status == 404 and text != _NO_PAGE:
        return NoSuchPod(text, name)
    if status == 404:
        return NotExplained(f"{server} has no {_PAGE}; is it the address of a trio-sched, with profiling enabled?")
    right = f"; you need the right to get the path {_PAGE}" if status in (401, 403) else ""
    return NotExplained(f"{server} does not explain {name}: {status} {text}{right}")


def _explanation(server: str, body: bytes) -> dict[str, Any]:
    try:
        data: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        explanation_text(data)
    except _UNREADABLE as problem:
        raise NotExplained(f"what {server} sends is no explanation of this version: {problem!r}") from problem
    return data
