"""Exchanges the configuration while the scheduler runs; where that cannot be done, the old one stays in force.

The new configuration is read and checked, its plugins are built, what they need to read is listed, and their background
tasks are started, all of that beside the old ones. Then, between two pods, the profiles are exchanged. Attempts that
have found a node go on with the plugins that they began with.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Callable, Sequence
from difflib import unified_diff
from functools import partial
from typing import Final, Protocol

import trio
from attrs import define, evolve, field

from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.limits import RELOAD_LIST_SECONDS, RELOAD_POLL_SECONDS, RELOAD_TRIAL_SECONDS
from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.daemon.plugins.background_tasks import BackgroundTasks
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.daemon.writes.scheduler_events import reloaded
from trio_sched.documents.files import read_bytes
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.errors import TrioSchedError

log = logging.getLogger(__name__)

_FIXED: Final = {
    "client_connection": "clientConnection",
    "delay_cache_until_active": "delayCacheUntilActive",
    "enable_contention_profiling": "enableContentionProfiling",
    "enable_profiling": "enableProfiling",
    "explain_in_condition": "explainInCondition",
    "extenders": "extenders",
    "leader_election": "leaderElection",
    "sharding": "sharding",
}
"""Fields of the configuration that cannot change while the scheduler runs, and how they are written."""
_MOST_CHANGED_LINES: Final = 100


class ReloadRefused(TrioSchedError):
    """The new configuration could not be put in force."""


class ConfigurationSource(Protocol):
    """The configuration file."""

    @property
    def path(self) -> str:
        """The path of the file."""
        ...

    def read(self) -> DaemonSettings:
        """Read the file and resolve its profiles.

        Raises:
            TrioSchedError: it cannot be read, is invalid, or a plugin is missing.
        """
        ...


@define(eq=False)
class ReloadRequests:
    """What is reloaded, and when."""

    source: ConfigurationSource
    requested: WakeUp
    """Set on SIGHUP."""
    digest: bytes = b""
    """`digest_of` these when they were read for the start; empty: they are in force as they are when reloads begin."""
    watched: Callable[[], Sequence[str]] | None = None
    """Lists the files whose change is a reason to reload; None: the configuration file alone."""
    polls_files: bool = True
    """Whether they are looked at; where there are none, that would only cost time."""
    on_success: Callable[[str], None] = lambda _name: None
    """Is called after each success with the name of what was reloaded."""

    @property
    def name(self) -> str:
        """What is reloaded, for the log: the configuration file, if there is one."""
        return self.source.path or "the files with plugins"

    def files(self) -> list[str]:
        """The files whose change is a reason to reload."""
        if self.watched is not None:
            return list(self.watched())
        return [self.source.path] if self.source.path else []


@define(eq=False, kw_only=True)
class Reloader:
    """Reloads the configuration when that is requested, and when the file has changed."""

    assembly: Assembly
    requests: ReloadRequests
    _digest: bytes = field(default=b"", init=False)

    async def run(self, services: trio.Nursery) -> None:
        """Reload until cancelled.

        Args:
            services: holds the background tasks of new plugins.
        """
        self._digest = self.requests.digest or digest_of(self.requests.files())
        async with trio.open_nursery() as nursery:
            if self.requests.polls_files:
                nursery.start_soon(self._poll_files)
            while True:
                await self.requests.requested.wait()
                await self.reload(services)

    async def reload(self, services: trio.Nursery) -> None:
        """Read the file and put it in force; a failure is logged, counted and recorded as an event."""
        self._digest = digest_of(self.requests.files()) or self._digest
        counters, former = self.assembly.reloads, self.assembly.settings.config
        try:
            fixed = await self._reload(services)
        except Exception as error:  # plugins of the new configuration may raise anything
            problem = str(error) if isinstance(error, TrioSchedError) else describe_error(error)
            place, hint = getattr(error, "place", ""), getattr(error, "hint", "")
            fields = {"file": self.requests.name, "err": problem, "place": place, "hint": hint}
            log.error("Configuration not reloaded; the former one stays in force", extra=_present(fields))
            self._record("Warning", f"{self.requests.name}: {problem}")
            counters.count(problem)
            return
        log.info("Reloaded configuration", extra={"file": self.requests.name, "profiles": self._profile_names()})
        self._record("Normal", f"{self.requests.name} is in force")
        counters.count("", changed_lines(former, self.assembly.settings.config))
        self.requests.on_success(self.requests.name)
        if fixed:
            log.warning(
                "some fields of the configuration cannot change while the scheduler runs; restart it for these",
                extra={"file": self.requests.name, "fields": fixed},
            )

    async def _reload(self, services: trio.Nursery) -> list[str]:
        """Put the file in force.

        Returns:
            The fields that were left as they are.
        """
        assembly, former = self.assembly, self.assembly.loaded
        path = self.requests.source.path
        if path and _is_special(path):  # waiting for whoever writes to a pipe would hold up everything
            raise ReloadRefused("it is not a regular file; replace it by one, or restart the scheduler")
        settings = self.requests.source.read()
        config, fixed = keep_fixed(former.settings.config, settings.config)
        settings = evolve(settings, config=config, identity=former.settings.identity)
        loaded = assembly.loader.load(settings)
        tasks = BackgroundTasks(loaded.background_tasks, loaded.leader_tasks, is_on_trial=True)
        is_in_force = False
        try:
            await self._follow(loaded)
            services.start_soon(tasks.run)
            led_before = assembly.leading
            if led_before is not None:
                led_before.start_soon(tasks.run_as_leader)
            await _pass_trial(tasks)
            await assembly.schedule_one.call_between_pods(partial(self._exchange, loaded))
            is_in_force = True
        finally:
            (assembly.tasks if is_in_force else tasks).cancel()
            assembly.watches.follow_only((loaded if is_in_force else former).wanted_kinds)
        assembly.tasks = tasks
        if assembly.leading is not None and led_before is None:  # it has begun to lead meanwhile
            assembly.leading.start_soon(tasks.run_as_leader)
        return fixed

    async def _follow(self, loaded: LoadedProfiles) -> None:
        """Have what the new plugins read listed."""
        with trio.move_on_after(RELOAD_LIST_SECONDS) as limit:
            await self.assembly.watches.follow(loaded.wanted_kinds)
        if limit.cancelled_caught:
            raise ReloadRefused(f"what its plugins read could not be listed within {RELOAD_LIST_SECONDS:.0f} s")

    def _exchange(self, loaded: LoadedProfiles) -> None:
        """Schedule with *loaded* from now on, and end the waits that belong to the former plugins."""
        assembly = self.assembly
        assembly.put_in_force(loaded)
        for waiting in list(assembly.waiting.by_uid.values()):  # the plugins that they wait on are gone
            waiting.reject("", "the configuration of the scheduler has changed")
        assembly.pods_available.set()
        assembly.backoff_changed.set()

    # --- the files --------------------------------------------------------------------------------------------------

    async def _poll_files(self) -> None:
        """Request a reload when a file has other contents; a volume of a ConfigMap replaces it by a new link."""
        known, is_first = self._identities(), True  # they may have changed since the start read them
        while True:
            await trio.sleep(RELOAD_POLL_SECONDS)
            files, found = self.requests.files(), self._identities()
            config = self.requests.source.path
            is_same = found == known and not is_first
            if is_same or (config and config not in found) or not (digest := digest_of(files)):
                continue
            changed = sorted(path for path in found.keys() | known.keys() if found.get(path) != known.get(path))
            known, is_first = found, False
            if digest != self._digest:
                only_config = files == [config]
                what = "Configuration file has changed" if only_config else "Files have changed"
                log.info(what, extra={"file": config} if only_config else {"files": changed or files})
                self.requests.requested.set()

    def _identities(self) -> dict[str, tuple[int, ...]]:
        """What is different of each file that is there when it has changed."""
        return {path: identity for path in self.requests.files() if (identity := _identity(path)) is not None}

    # --- saying so --------------------------------------------------------------------------------------------------

    def _profile_names(self) -> list[str]:
        return [profile.name for profile in self.assembly.settings.profiles]

    def _record(self, type_: str, note: str) -> None:
        settings = self.assembly.settings
        component = settings.config.profiles[0].scheduler_name
        self.assembly.recorder.record_on_lease(
            reloaded(settings.config.leader_election, note, component=component, is_failure=type_ == "Warning")
        )


def changed_lines(former: SchedulerConfig, new: SchedulerConfig) -> tuple[str, ...]:
    """The changed lines of the configuration: those that *new* does not have (``-``) and has instead (``+``)."""
    from trio_sched.config.dump import dump_configuration  # not needed to start

    before, after = (dump_configuration(config).splitlines() for config in (former, new))
    difference = unified_diff(before, after, n=0, lineterm="")
    lines = [line for line in difference if not line.startswith(("---", "+++", "@@"))]
    left_out = len(lines) - _MOST_CHANGED_LINES
    return (*lines[:_MOST_CHANGED_LINES], *([f"… and {left_out} more lines"] if left_out > 0 else []))


def keep_fixed(former: SchedulerConfig, new: SchedulerConfig) -> tuple[SchedulerConfig, list[str]]:
    """*new* with the fields of *former* that cannot change, and the names of those that would have."""
    changed = [name for name in _FIXED if getattr(former, name) != getattr(new, name)]
    return evolve(new, **{name: getattr(former, name) for name in changed}), [_FIXED[name] for name in changed]


async def _pass_trial(tasks: BackgroundTasks) -> None:
    """Wait whether a background task fails right after its start.

    Raises:
        PluginTaskFailed: one does.
    """
    if tasks.hooks or tasks.leader_hooks:
        await trio.sleep(RELOAD_TRIAL_SECONDS)
    tasks.is_on_trial = False
    if tasks.failure is not None:
        raise tasks.failure


def digest_of(paths: Sequence[str]) -> bytes:
    """What tells the contents of regular files apart; empty if the first is none, or cannot be read."""
    digest = hashlib.sha256()
    for index, path in enumerate(paths):
        try:
            content = None if _is_special(path) else read_bytes(path, pipe_wait_seconds=0.0)
        except (OSError, ValueError):
            content = None
        if content is None and not index:
            return b""
        digest.update(f"{path}\n{-1 if content is None else len(content)}\n".encode("utf-8", "surrogateescape"))
        digest.update(content or b"")
    return digest.digest()


def _is_special(path: str) -> bool:
    """Whether *path* is there, but no regular file: a pipe can be read once, and a device without an end."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _identity(path: str) -> tuple[int, int, int, int] | None:
    """What is different when the file has changed; None if it is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _present(fields: dict[str, str]) -> dict[str, str]:
    return {name: text.encode("utf-8", "backslashreplace").decode() for name, text in fields.items() if text}
