"""``trio-sched top``: a running trio-sched, or a cluster, in the terminal, live."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click
import trio
from rich.console import Console
from rich.live import Live

from trio_sched.cli.live.live_scheduler import NotShown, connection_of, followed, refused, scheduler_options
from trio_sched.cli.live.running_scheduler import hint_about_trust
from trio_sched.cli.live.top_screen import screen
from trio_sched.cli.options.simulation_options import one_error, set_up_log
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.no_answer import AnswerCommand
from trio_sched.cli.process.terminal import answer_console
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import ApiError, KubeClientError
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.live_page.reader import LiveReader

if TYPE_CHECKING:
    from trio_sched.daemon.serving.pages.live.live_pages import LivePages

_AGAIN_SECONDS: Final = 1.0
"""After the end of a stream."""
_LINES: Final = 40
"""Where there is no terminal."""
_STREAM: Final = b"/ui/stream"
_PASSING: Final = frozenset({429, 503})
"""Statuses of refusals that do not last."""

Show = Callable[[LiveReader, str], None]
"""Shows what is read, and why it is not up to date."""


@click.command(cls=AnswerCommand, short_help="Show a running trio-sched, or a cluster, in the terminal, live.")
@scheduler_options
@click.option("--once", is_flag=True, help="Print one screen and end; so it is where the output is no terminal.")
def top(once: bool, **options: Any) -> ExitCode:
    """Show a running trio-sched, or a cluster, on one screen, live: nodes by pool, causes of pending pods, the queue.

    With --from the scheduler is asked with the credentials of your kubeconfig, which takes the right to get the paths
    /ui and /ui/*; else the cluster is, which takes those to list and watch pods and nodes. Ctrl-C ends it.
    """
    set_up_log(0)
    console = answer_console()
    is_live = sys.stdout.isatty() and not once
    with one_error():
        connection = connection_of(options)
        live = Live(console=console, screen=True, auto_refresh=False) if is_live else None
        show = partial(_show, console, live)
        if connection is None:
            cluster = followed(options)
            with live or nullcontext():
                trio.run(_follow_cluster, cluster, show, is_live)
        else:
            with hint_about_trust(), live or nullcontext():
                trio.run(_follow, connection, show, is_live)
    return ExitCode.OK


def _show(console: Console, live: Live | None, reader: LiveReader, problem: str) -> None:
    if live is None:
        console.print(screen(reader, _LINES, problem))
    else:
        live.update(screen(reader, console.height, problem), refresh=True)


async def _follow_cluster(cluster: AbstractAsyncContextManager[LivePages], show: Show, is_live: bool) -> None:
    """Show the cluster: until cancelled, or once."""
    async with cluster as pages:
        while True:  # streams end from time to time
            reader = LiveReader()
            async with aclosing(pages.streams.events(is_zipped=False)) as stream:
                async for received in stream:
                    if reader.take(received):
                        show(reader, "")
                        if not is_live:
                            return


async def _follow(connection: ConnectionSettings, show: Show, is_live: bool) -> None:
    """Read the stream, and show it: until cancelled, or once.

    Raises:
        NotShown: the scheduler shows nothing to the user.
        KubeClientError: it cannot be reached.
    """
    async with connect(connection, component="top", qps=-1) as client:
        reader: LiveReader | None = None
        while True:
            problem = ""  # the scheduler ends streams from time to time
            try:
                reader = await _read(client, show, is_live)
                if not is_live:
                    return
            except ApiError as error:
                if reader is None or error.code not in _PASSING:
                    raise refused(connection.server, error.code, error.message) from error
                problem = str(error)
            except KubeClientError as error:
                if reader is None:
                    raise
                problem = str(error)
            if problem:
                show(reader, f"trying again: {problem}")
            await trio.sleep(_AGAIN_SECONDS)


async def _read(client: KubeClient, show: Show, is_live: bool) -> LiveReader:
    """Show what one stream says, until its end.

    Raises:
        NotShown: it ends before it says anything.
    """
    reader, has_begun = LiveReader(), False
    async with client.stream(_STREAM) as stream:
        while received := await stream.receive():
            if reader.take(received):
                has_begun = True
                show(reader, "")
                if not is_live:
                    break
    if not has_begun:
        raise NotShown(f"{client.settings.server} has ended the stream before it said anything")
    return reader
