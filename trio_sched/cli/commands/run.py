"""The daemon, from its flags to its exit code."""

import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random

import click
import trio
from attrs import evolve, frozen

from trio_sched.cli.flags.flags import Flags
from trio_sched.cli.options.daemon_settings import daemon_settings
from trio_sched.cli.plugin_loading.chosen_plugins import PointsByPlugin
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.cli.process.crash_reports import crash_reports
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.queued_streams import queued_streams
from trio_sched.cli.process.shadow_report import report_shadow
from trio_sched.cli.startup.emulated_version import flags_for_server, prepared_for_server
from trio_sched.cli.startup.prepare import LoggingOptionsError, Prepared, check_elector, check_logging, prepare
from trio_sched.cli.startup.start_log import (
    log_configuration,
    log_flags,
    log_overrides,
    log_plugins,
    log_settings,
    log_versions,
)
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.clients import open_clients
from trio_sched.daemon.leader_election import LeaderElectionLost
from trio_sched.daemon.logs.log_lines import line_handler
from trio_sched.daemon.logs.log_queue import drain_logs
from trio_sched.daemon.logs.log_setup import LogSettings, set_up_logging
from trio_sched.daemon.reload import ReloadRequests, digest_of
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.shutdown_watchdog import wait_for_overdue_hooks
from trio_sched.daemon.signals import stop_on_signal
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.daemon.tracing.environment import TracesWanted, traces_wanted
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.engine.shadow.judgement import Judgements
from trio_sched.errors import TrioSchedError, leaves
from trio_sched.go.text import printable_lines
from trio_sched.kube_client.files import UNREADABLE, describe_open_error
from trio_sched.kube_client.reachability import Reachability
from trio_sched.open_files import raise_open_files_limit

log = logging.getLogger(__name__)


def run(flags: Flags) -> ExitCode:
    """Run the daemon that *flags* describe, until a signal ends it.

    With an election the exit code is 0; without one there is no other replica, and it is 1 as in kube-scheduler.
    """
    raise_open_files_limit()
    with queued_streams(), crash_reports(core_files=flags["core-files"]):
        return _run(flags)


def _run(flags: Flags) -> ExitCode:
    set_up_logging(LogSettings())  # for what is wrong with the gates, on which the format of the log depends
    code = ExitCode.OK
    problem: TrioSchedError
    try:
        check_logging(flags)
        for gate in flags.outdated_gates():
            warning = f"Warning: setting {gate.stage} feature gate. It will be removed in a future release."
            log.info("%s", warning, extra={"featureGate": gate.name, "value": gate.value})
        set_up_logging(log_settings(flags))
        log_flags(flags)
        selection = PluginSelection.of_flags(flags)
        digest = digest_of(watched_files(flags))  # before the files are read: what changes them later is seen
        registry = selection.registry()
        points_of = PointsByPlugin(registry)
        prepared = prepared_for_server(flags, partial(prepare, points_of=points_of))
        prepared.source.warn()
        log_overrides(prepared, points_of)
        log_plugins(prepared.profiles)
        log_configuration(prepared.effective_yaml)
        if flags.write_config_to:
            _write(prepared.effective_yaml(), flags.write_config_to)
            return ExitCode.OK
        traces = traces_wanted(os.environ)
        settings = daemon_settings(prepared, registry, watch_event_loop=bool(flags["secure-port"]))
        log_versions(flags.reported_version)
        if settings.config.leader_election.leader_elect:
            check_elector(settings.config.leader_election)
        judgements = trio.run(_run_until_signal, prepared, settings, digest, traces)
        if settings.shadow is not None and judgements is not None:
            code = report_shadow(settings.shadow, judgements)
        elif not settings.config.leader_election.leader_elect:
            raise ConfigError.of("finished without leader elect")
    except* LoggingOptionsError as group:
        for problem in leaves(group):
            click.echo(printable_lines(str(problem)), err=True)
        code = ExitCode.FAILURE
    except* LeaderElectionLost as group:  # normal life of a replica: it ends, and is started again
        for problem in leaves(group):
            log.error("Leaderelection lost", extra={"err": str(problem)})
        code = ExitCode.FAILURE
    except* TrioSchedError as group:
        for problem in leaves(group):
            log.error("command failed", extra=_fields(problem))
        code = ExitCode.FAILURE
    return code


@frozen
class _ConfigurationFile:
    """What the flags name, read again for a reload or another version; the connection to the API server stays."""

    prepared: Prepared

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.prepared.flags.config

    def read(self) -> DaemonSettings:
        """See `ConfigurationSource.read`."""
        registry = PluginSelection.of_flags(self.prepared.flags).registry()
        points_of = PointsByPlugin(registry)
        prepared = prepare(self.prepared.flags, points_of=points_of, connection=self.prepared.connection)
        prepared.source.warn()
        return daemon_settings(prepared, registry)


def watched_files(flags: Flags) -> list[str]:
    """The files whose change is a reason to reload: the configuration, and those with plugins."""
    return [*([flags.config] if flags.config else []), *PluginSelection.of_flags(flags).watched_files()]


def _reload_requests(prepared: Prepared, digest: bytes) -> ReloadRequests | None:
    if not (prepared.flags.config or PluginSelection.of_flags(prepared.flags).has_files):
        return None
    return ReloadRequests(_ConfigurationFile(prepared), WakeUp(), digest, partial(watched_files, prepared.flags))


async def _run_until_signal(
    prepared: Prepared, settings: DaemonSettings, digest: bytes, traces: TracesWanted | None
) -> Judgements | None:
    """Run the daemon; returns what a shadow has compared, None if it is none."""
    stop, reload = trio.Event(), _reload_requests(prepared, digest)
    actions: dict[signal.Signals, Callable[[], None]] = {}
    if reload is not None and not sys.stderr.isatty():
        # A closed terminal sends SIGHUP to what runs in it, and that is to end with it.
        actions[signal.SIGHUP] = reload.requested.set
    async with trio.open_nursery() as nursery:
        await nursery.start(stop_on_signal, stop, actions)
        if (handler := line_handler(log)) is not None:
            nursery.start_soon(handler.run)
        connections = open_clients(
            settings.config,
            prepared.connection,
            reachability=Reachability(),
            read_only=settings.shadow is not None,
        )
        async with connections as clients, _tracing(traces) as tracer:
            flags = await flags_for_server(prepared.flags, clients.main)
            if flags is not prepared.flags:
                configured = _ConfigurationFile(evolve(prepared, flags=flags))
                settings = evolve(configured.read(), identity=settings.identity, metrics=settings.metrics)
                reload = None if reload is None else evolve(reload, source=configured)
            assembly = assemble(settings, clients, random=Random(), wall_clock=_now, tracer=tracer)
            actions[signal.SIGUSR2] = assembly.cache_checks.requested.set
            nursery.start_soon(_exit_if_overdue, assembly.ending)
            await run_daemon(assembly, stop=stop, reload=reload)
        nursery.cancel_scope.cancel()
    return None if assembly.shadow is None else assembly.shadow.judgements


_now = partial(datetime.now, UTC)


@asynccontextmanager
async def _tracing(wanted: TracesWanted | None) -> AsyncGenerator[AttemptTracer | None, None]:
    """What traces attempts; it has exported everything, or has given up, when the block is left."""
    if wanted is None:
        yield None
        return
    from trio_sched.daemon.tracing.export import exporting  # OpenTelemetry is an extra, and slow to import

    async with exporting(wanted, os.environ, _now) as tracer:
        yield tracer


async def _exit_if_overdue(ending: trio.Event) -> None:
    hooks = await wait_for_overdue_hooks(ending)
    log.error("Exiting although hooks of plugins still run: they were cancelled and go on", extra={"hooks": hooks})
    drain_logs()
    os._exit(ExitCode.FAILURE)


def _write(text: str, path: str) -> None:
    """Write the effective configuration.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8")
    except UNREADABLE as error:
        raise ConfigError.of(describe_open_error(path, error)) from error
    log.info("Wrote configuration", extra={"file": path})


def _fields(problem: TrioSchedError) -> dict[str, str]:
    """The fields of the log line about *problem*; bytes that are not UTF-8 in a file's name are escaped."""
    fields = {"err": str(problem), "place": problem.place, "hint": problem.hint}
    return {name: text.encode("utf-8", "backslashreplace").decode() for name, text in fields.items() if text}
