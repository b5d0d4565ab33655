"""Files with plugins are reloaded when they are saved."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from trio_sched.cli.commands.simulate import _reload_requests
from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.testing import VirtualCluster, pod, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

SOURCE = """
from trio_sched.plugin_api import hookimpl, unschedulable

class NodeName:
    name = "NodeName"
    def __init__(self, args, handle): pass
    @hookimpl
    def filter_node(self, pod, node): return unschedulable("%s")
"""


@asynccontextmanager
async def developing(folder: Path) -> AsyncIterator[tuple[VirtualCluster, SchedulerProcess]]:
    """A scheduler with the plugins of *folder*, which it reloads; there is no configuration file."""
    selection = PluginSelection(folders=[str(folder)])
    read = partial(settings_of, None, "", selection)
    async with virtual_cluster(nodes=1, scheduler=False) as cluster:
        cluster._settings = read()
        process = await cluster.start_scheduler(wait=False)
        process._reload = _reload_requests(None, selection, read)
        await process.wait_started()
        yield cluster, process


async def refusal(cluster: VirtualCluster, name: str) -> str:
    await cluster.create(pod(name))
    await trio.sleep(2)
    return str(cluster.events(about=name))


async def test_what_is_saved_is_in_force_and_what_is_broken_is_not(
    tmp_path: Path,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.INFO)
    autojump_clock.autojump_threshold = 0.004  # threads read the files, which takes longer on a busy machine
    file = tmp_path / "name.py"
    file.write_text(SOURCE % "first answer")
    async with developing(tmp_path) as (cluster, process):
        await trio.sleep(6)
        assert "first answer" in await refusal(cluster, "a")
        file.write_text(SOURCE % "other answer")
        await trio.sleep(8)
        assert "other answer" in await refusal(cluster, "b")
        file.write_text("x = (\n")
        await trio.sleep(8)
        assert process.assembly.reloads.last_problem == f"{file}, line 1: SyntaxError: '(' was never closed"
        assert "other answer" in await refusal(cluster, "c")
        file.write_text((SOURCE % "third answer").replace("(self, pod, node)", "(self, pod, nod)"))
        await trio.sleep(8)
        assert process.assembly.reloads.last_problem.startswith(
            f"{file}, line 4: plugin 'NodeName': hook 'filter_node'"
        )
        (tmp_path / "_answers.py").write_text("ANSWER = 'fourth answer'\n")
        file.write_text("from _answers import ANSWER" + (SOURCE % "x").replace('"x"', "ANSWER"))
        await trio.sleep(8)
        assert "fourth answer" in await refusal(cluster, "d")
        (tmp_path / "_answers.py").write_text("ANSWER = 'fifth answer'\n")
        await trio.sleep(8)
        assert "fifth answer" in await refusal(cluster, "e")
        file.unlink()  # then NodeName is that of Kubernetes again
        (tmp_path / "_answers.py").unlink()
        await trio.sleep(8)
        assert "answer" not in await refusal(cluster, "f")
        assert (process.assembly.reloads.succeeded, process.assembly.reloads.failed) == (4, 2)
    said = capsys.readouterr().err.splitlines()
    assert said == ["Reloaded the files with plugins; pods that wait are tried again."] * 4
