"""Which kube-scheduler is acted as on API servers of different versions."""

import logging
import signal
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
from real_servers import eventually, process
from trio.testing import MockClock

from trio_sched.cli.flags.flags import Flags, parse_flags
from trio_sched.cli.startup.emulated_version import flags_for_server
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, InProcessTransport, serve


async def asked(flags: Flags, transport: httpx.AsyncBaseTransport) -> str:
    async with connect(ConnectionSettings(server="http://api.test"), transport=transport, qps=-1) as client:
        major, minor = (await flags_for_server(flags, client)).feature_gates().version
    return f"{major}.{minor}"


@pytest.mark.parametrize(("server", "emulated"), [("1.31", "1.36"), ("1.36", "1.36"), ("1.37", "1.37")])
async def test_without_a_flag_it_is_that_of_the_server(server: str, emulated: str) -> None:
    assert await asked(parse_flags([]), InProcessTransport(ApiServer(kubernetes_version=server))) == emulated


@pytest.mark.parametrize("minor", ["38", "38+", "99"])
async def test_it_is_the_newest_that_there_is_on_a_newer_server(minor: str) -> None:
    answer = httpx.MockTransport(lambda _request: httpx.Response(200, json={"major": "1", "minor": minor}))
    assert await asked(parse_flags([]), answer) == "1.37"


async def test_a_flag_is_kept() -> None:
    server = InProcessTransport(ApiServer(kubernetes_version="1.37"))
    assert await asked(parse_flags(["--emulated-version=1.36"]), server) == "1.36"


class Silent(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.sleep_forever()
        raise AssertionError(request)


@pytest.mark.parametrize(
    "transport",
    [Silent(), httpx.MockTransport(lambda _request: httpx.Response(403)), InProcessTransport(ApiServer())],
    ids=["silent", "forbidden", "away"],
)
async def test_a_server_that_does_not_say_it_is_not_waited_for(
    autojump_clock: MockClock, transport: httpx.AsyncBaseTransport, caplog: pytest.LogCaptureFixture
) -> None:
    if isinstance(transport, InProcessTransport):
        transport.server.stop()
    began = trio.current_time()
    with caplog.at_level(logging.WARNING):
        assert await asked(parse_flags([]), transport) == "1.36"
    assert trio.current_time() - began <= 2
    assert "--emulated-version chooses another" in caplog.text


OF_1_37 = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}
"""


@pytest.mark.parametrize(
    ("server", "words"),
    [("1.37", "valid in no older version"), ("1.36", "unexpected field `shape`"), ("", "unexpected field `shape`")],
)
async def test_a_file_that_is_valid_in_1_37_only_needs_a_server_of_that_version(
    server: str, words: str, tmp_path: Path
) -> None:
    log_file, file = tmp_path / "log", tmp_path / "scheduler.yaml"
    file.write_text(OF_1_37)
    async with trio.open_nursery() as nursery:
        url = "http://127.0.0.1:1"
        if server:
            url = await nursery.start(partial(serve, ApiServer(kubernetes_version=server)))
        command = [sys.executable, "-m", "trio_sched", f"--config={file}", f"--master={url}", "--secure-port=0"]

        async def is_said() -> bool:
            return words in log_file.read_text()

        async with process(command, log_file) as scheduler:
            await eventually(is_said, within_seconds=30)
            if server != "1.37":
                assert await scheduler.wait() == 1
        nursery.cancel_scope.cancel()


async def test_a_process_schedules_as_the_server_s_version(tmp_path: Path) -> None:
    log_file = tmp_path / "log"
    async with trio.open_nursery() as nursery:
        url = await nursery.start(partial(serve, ApiServer(kubernetes_version="1.37")))
        command = [sys.executable, "-m", "trio_sched", f"--master={url}", "--leader-elect=false", "--secure-port=0"]

        async def is_said() -> bool:
            return "Scheduling as kube-scheduler 1.37, because the API server is of 1.37" in log_file.read_text()

        async with process(command, log_file) as scheduler:
            await eventually(is_said, within_seconds=30)
            scheduler.send_signal(signal.SIGTERM)
            assert await scheduler.wait() == 1  # without an election
        nursery.cancel_scope.cancel()
    assert "command failed" in log_file.read_text()
