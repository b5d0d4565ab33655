"""``trio-sched ui``: the live page of a running trio-sched in the browser."""

from __future__ import annotations

import secrets
import webbrowser
from functools import partial
from typing import Any, Final, cast

import click
import trio

from trio_sched.cli.commands.live_scheduler import connection_of, refused, scheduler_options
from trio_sched.cli.commands.page_proxy import PageProxy
from trio_sched.cli.commands.simulation_options import one_error, set_up_log
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.no_answer import AnswerCommand
from trio_sched.daemon.signals import stop_on_signal
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator.endpoints.serve import configuration

_HOST: Final = "127.0.0.1"


@click.command(cls=AnswerCommand, short_help="Show the live page of a running trio-sched in the browser.")
@scheduler_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The local port; a free one if not given.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def ui(port: int, no_browser: bool, **options: Any) -> ExitCode:
    """Show the live page of a running trio-sched in the browser: its nodes, its queue, why pods are pending.

    A browser has no credentials for a scheduler. So this serves the page on this machine alone, at an address that
    nobody can guess, and asks the scheduler with the credentials of your kubeconfig. Nothing can be changed there. It
    takes the right to get the paths /ui and /ui/*. Ctrl-C ends it.
    """
    set_up_log(0)
    with one_error():
        trio.run(_show, connection_of(options), port, not no_browser)
    return ExitCode.OK


async def _show(connection: ConnectionSettings, port: int, opens_browser: bool) -> None:
    stop = trio.Event()
    async with connect(connection, component="ui", qps=-1) as client, trio.open_nursery() as nursery:
        reply = await client.request(b"GET", b"/ui")
        if reply.status != 200:
            raise refused(connection.server, reply.status, reply.body.decode("utf-8", "replace"))
        await nursery.start(stop_on_signal, stop)
        proxy = PageProxy(client, secrets.token_urlsafe(18))
        url = await nursery.start(_serve, proxy, port)
        click.echo(f"The live page of {connection.server} is at\n\n  {url}\n")
        click.echo("Ctrl-C ends it.", err=True)
        if opens_browser:
            await trio.to_thread.run_sync(partial(webbrowser.open, url), abandon_on_cancel=True)
        await stop.wait()
        nursery.cancel_scope.cancel()


async def _serve(proxy: PageProxy, port: int, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
    """Serve *proxy* on this machine; reports the address of the page."""
    from hypercorn.trio import serve
    from hypercorn.typing import Framework

    config = configuration(_HOST, port, None, None)
    run = partial(serve, cast("Framework", proxy), config, mode="asgi", shutdown_trigger=trio.sleep_forever)
    async with trio.open_nursery() as nursery:
        (address, *_) = await nursery.start(run)
        chosen = address.rpartition(":")[2]
        proxy.hosts = frozenset({f"{_HOST}:{chosen}", f"localhost:{chosen}"})
        task_status.started(f"http://{_HOST}:{chosen}/{proxy.secret}/ui")
