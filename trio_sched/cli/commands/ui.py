"""``trio-sched ui``: the live page of a running trio-sched, a cluster, a simulation or a recording in the browser."""

from __future__ import annotations

import secrets
import tempfile
import webbrowser
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click
import trio
from attrs import evolve

from trio_sched.cli.flags.cluster_options import file_options, files_of
from trio_sched.cli.live.live_scheduler import connection_of, followed, refused, scheduler_options
from trio_sched.cli.live.local_page import Answer, LocalPage, SchedulerProxy
from trio_sched.cli.live.running_scheduler import hint_about_trust
from trio_sched.cli.options.progress import Progress, shown_progress
from trio_sched.cli.options.recorded_settings import RecordedSettings
from trio_sched.cli.options.simulation_options import one_error, set_up_log, settings_of
from trio_sched.cli.options.version_options import Versions, version_options
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection, plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.no_answer import AnswerCommand
from trio_sched.daemon.serving.messages import Request, Response
from trio_sched.daemon.serving.pages.routes import Routes
from trio_sched.daemon.signals import stop_on_signal
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator.endpoints.serve import configuration

if TYPE_CHECKING:
    from trio_sched.daemon.serving.pages.live.live_pages import LivePages
    from trio_sched.daemon.serving.pages.live.recorded_pages import RecordedPages
    from trio_sched.simulation.cluster_files import ClusterFiles

_HOST: Final = "127.0.0.1"


@click.command(cls=AnswerCommand, short_help="Show a running trio-sched, a cluster or a recording in the browser.")
@scheduler_options
@file_options
@click.option(
    "--recording",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Show what --record has written to this folder, with a slider to go through its time, forward and back; "
    "replayed with the recorded configuration unless --config gives another.",
)
@plugin_options
@version_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The local port; a free one if not given.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def ui(
    recording: Path | None,
    kubernetes_version: str | None,
    emulated_version: str,
    port: int,
    no_browser: bool,
    **options: Any,
) -> ExitCode:
    """Show a running trio-sched, a cluster or a recording in the browser: nodes, queue, why pods are pending.

    A browser has no credentials for either. So this serves the page on this machine alone, at an address that nobody
    can guess, and asks with the credentials of your kubeconfig; nothing can be changed there. With --from it takes the
    right to get the paths /ui and /ui/*, else those to list and watch pods and nodes. With -f or --demo the cluster is
    simulated first, and its time can be gone through as with --recording; nobody is asked then. Ctrl-C ends it.
    """
    set_up_log(0)
    with one_error():
        selection, cluster = selection_of(options), files_of(options)
        recorded = [name for name, given in (("-f or --demo", cluster), ("--recording", recording)) if given]
        if recorded:
            _refuse_others(recorded, options)
        if (kubernetes_version or emulated_version) and cluster is None:
            raise click.UsageError("--kubernetes-version and --emulated-version are of what -f or --demo simulates")
        if recorded:
            # What is written here is read again for the details of each time.
            with tempfile.TemporaryDirectory() as text:
                scratch = Path(text)
                if cluster is not None:
                    versions = Versions.of_options(kubernetes_version, emulated_version, None)
                    pages, name = _simulated(cluster, options["config"], selection, versions, scratch), cluster.sources
                    trio.run(_show_pages, pages, f"the simulation of {', '.join(name)}", port, not no_browser)
                elif recording is not None:
                    pages = _recorded(recording, options["config"], selection, scratch)
                    trio.run(_show_pages, pages, f"the recording {recording}", port, not no_browser)
            return ExitCode.OK
        connection = connection_of(options)
        if connection is None:
            trio.run(_show_cluster, followed(options, selection), port, not no_browser)
        else:
            if selection.has_files:
                raise click.UsageError("--from shows what that trio-sched has; leave out --plugin and --plugins-dir")
            with hint_about_trust():
                trio.run(_show_scheduler, connection, port, not no_browser)
    return ExitCode.OK


def _refuse_others(recorded: Sequence[str], options: dict[str, Any]) -> None:
    """Refuse *options* that name something else to show than *recorded* does.

    Raises:
        click.UsageError: there is such an option.
    """
    if len(recorded) > 1:
        raise click.UsageError(f"{' and '.join(recorded)} are two things to show; leave out one")
    if any(options[name] for name in ("scheduler_url", "from_ca", "from_insecure", "kubeconfig", "context")):
        raise click.UsageError(
            f"{recorded[0]} says what is shown; of the other options about that it takes --config and plugins alone"
        )


async def _show_scheduler(connection: ConnectionSettings, port: int, opens_browser: bool) -> None:
    async with connect(connection, component="ui", qps=-1) as client:
        reply = await client.request(b"GET", b"/ui")
        if reply.status != 200:
            raise refused(connection.server, reply.status, reply.body.decode("utf-8", "replace"))
        await _serve_until_signal(SchedulerProxy(client), connection.server, port, opens_browser)


async def _show_cluster(cluster: AbstractAsyncContextManager[LivePages], port: int, opens_browser: bool) -> None:
    async with cluster as pages:
        await _show_pages(pages, "the cluster", port, opens_browser)


async def _show_pages(pages: LivePages | RecordedPages, name: str, port: int, opens_browser: bool) -> None:
    await _serve_until_signal(answer_here(pages), name, port, opens_browser)


def _simulated(
    cluster: ClusterFiles, config: Path | None, selection: PluginSelection, versions: Versions, scratch: Path
) -> RecordedPages:
    """The page of a simulation of *cluster*, which is recorded below *scratch* and replayed for that.

    Raises:
        TrioSchedError: the cluster cannot be read, or not be scheduled; possibly in an exception group.
    """
    from trio_sched.simulation.simulated_run import Plan, refuse_extenders, run_plan, scheduler_names  # as below

    with shown_progress() as progress:
        folder = scratch / "recording"
        settings = settings_of(config, "", selection, [*versions.flags, f"--record={folder}"])
        refuse_extenders(settings)
        cluster = evolve(cluster, kubernetes_version=versions.kubernetes)
        manifests = cluster.load(scheduler_names(settings), begin=progress.begin, watched=())
        progress.begin("pods decided on")
        plan = Plan(
            settings=settings,
            manifests=manifests,
            seed=0,
            begins=datetime.now(UTC),
            kubernetes_version=versions.kubernetes,
        )
        run_plan(plan, progress.count)
        name = f"simulation of {', '.join(cluster.sources)}"
        return _replayed(folder, config, selection, scratch, progress, name)


def _recorded(folder: Path, config: Path | None, selection: PluginSelection, scratch: Path) -> RecordedPages:
    """The page of the recording in *folder*.

    Raises:
        TrioSchedError: it is no recording, or cannot be scheduled with; possibly in an exception group.
    """
    with shown_progress() as progress:
        return _replayed(folder, config, selection, scratch, progress)


def _replayed(
    folder: Path, config: Path | None, selection: PluginSelection, scratch: Path, progress: Progress, name: str = ""
) -> RecordedPages:
    from trio_sched.replaying.recorded_states import recorded_pages  # all of a daemon
    from trio_sched.replaying.replay import ReplayPlan
    from trio_sched.replaying.report import notes

    progress.begin("decisions made again")
    plan = ReplayPlan(
        folder=folder,
        settings_of=RecordedSettings(config, None, selection, scratch),
        is_same_configuration=config is None,
        progress=lambda decisions: progress.count(decisions, decisions),
    )
    pages, result = recorded_pages(plan, name)
    for note in notes(result):
        click.echo(note, err=True)
    return pages


def answer_here(pages: LivePages | RecordedPages) -> Answer:
    """Answers with *pages*, which are made in this process."""
    routes = Routes(exact=pages.handlers())

    async def answer(request: Request, _resources: AsyncExitStack) -> Response:
        return await routes(request)

    return answer


async def _serve_until_signal(answer: Answer, name: str, port: int, opens_browser: bool) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(stop_on_signal, stop)
        url = await nursery.start(serve_page, LocalPage(answer, secrets.token_urlsafe(18)), port)
        click.echo(f"The live page of {name} is at\n\n  {url}\n")
        click.echo("Ctrl-C ends it.", err=True)
        if opens_browser:
            await trio.to_thread.run_sync(partial(webbrowser.open, url), abandon_on_cancel=True)
        await stop.wait()
        nursery.cancel_scope.cancel()


async def serve_page(
    page: LocalPage, port: int, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve *page* on this machine; reports its address."""
    from hypercorn.trio import serve
    from hypercorn.typing import Framework

    config = configuration(_HOST, port, None, None)
    run = partial(serve, cast("Framework", page), config, mode="asgi", shutdown_trigger=trio.sleep_forever)
    async with trio.open_nursery() as nursery:
        (address, *_) = await nursery.start(run)
        chosen = address.rpartition(":")[2]
        page.hosts = frozenset({f"{_HOST}:{chosen}", f"localhost:{chosen}"})
        task_status.started(f"http://{_HOST}:{chosen}/{page.secret}/ui")
