"""What health endpoints say beyond the recorded answers."""

import logging

import pytest

from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving.pages.health import PING, Check, HealthEndpoint


def asking(query: str = "") -> Request:
    return Request(method="GET", path="/livez", target=f"/livez?{query}", query=query)


async def test_a_check_of_our_own_stands_in_the_list_only_while_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    problem = ""
    seen: list[tuple[str, str, str]] = []
    own = Check("own", lambda: problem, only_if_failing=True)
    endpoint = HealthEndpoint("livez", (PING, own), lambda *one: seen.append(one))
    assert (await endpoint.serve_all(asking("verbose"))).body == b"[+]ping ok\nlivez check passed\n"
    problem = "it is broken"
    for _ in range(3):
        failed = await endpoint.serve_all(asking())
        assert (failed.status, failed.body) == (
            500,
            b"[+]ping ok\n[-]own failed: reason withheld\nlivez check failed\n",
        )
    assert (await endpoint.serve_all(asking("exclude=own"))).body == b"ok"
    assert (await endpoint.handlers()["/livez/own"](asking())).body == b"internal server error: it is broken\n"
    assert [record.getMessage() for record in caplog.records] == [
        "own check failed: livez\n[-]own failed: it is broken\n"
    ]
    assert seen[:3] == [("livez", "ping", "success"), ("livez", "ping", "success"), ("livez", "own", "error")]
