"""What a recording is replayed with: the recorded configuration, or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import define, field

from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.config.errors import ConfigError
from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.recording.records import Configured

_DEFAULT: Final = DEFAULT_GATES.version_text


@define(eq=False)
class RecordedSettings:
    """What to schedule with, given what was recorded.

    Attributes:
        emulated_version: the version of kube-scheduler to decide as; empty: the recorded one.
        first: what was recorded first.
    """

    config: Path | None
    feature_gates: str | None
    selection: PluginSelection
    scratch: Path
    emulated_version: str = ""
    first: Configured | None = field(default=None, init=False)

    def __call__(self, recorded: Configured) -> DaemonSettings:
        """The given configuration and gates, or else those of *recorded*.

        Raises:
            ConfigError: they cannot be used.
        """
        self.first = self.first or recorded
        gates = _gates(recorded) if self.feature_gates is None else self.feature_gates
        version = self.emulated_version or recorded.emulated_version
        if self.config is None:
            return self._recorded(recorded, gates, version)
        return self._read(self.config, gates, version)

    def as_recorded(self, recorded: Configured) -> DaemonSettings:
        """Those of *recorded*.

        Raises:
            ConfigError: they cannot be used.
        """
        return self._recorded(recorded, _gates(recorded), recorded.emulated_version)

    def _recorded(self, recorded: Configured, gates: str, version: str) -> DaemonSettings:
        file = self.scratch / "recorded.yaml"
        file.write_text(recorded.configuration, encoding="utf-8")
        try:
            return self._read(file, gates, version)
        except ConfigError as error:
            raise error.within("the recorded configuration cannot be used; give one with --config: ") from error

    def _read(self, file: Path, gates: str, version: str) -> DaemonSettings:
        """Those of *file*.

        Raises:
            ConfigError: they cannot be used; it says as of which version they were read.
        """
        try:
            return settings_of(file, gates, self.selection, [f"--emulated-version={version}"] if version else [])
        except ConfigError as error:
            why = "as was recorded" if version != self.emulated_version else "as --emulated-version says"
            lines = [error.hint] if file == self.config and error.hint else []
            error.hint = "\n".join([*lines, f"It was read as of kube-scheduler {version or _DEFAULT}, {why}."])
            raise


def _gates(recorded: Configured) -> str:
    return ",".join(f"{name}={str(value).lower()}" for name, value in sorted(recorded.gates.items()))
