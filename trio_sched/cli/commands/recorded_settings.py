"""What a recording is replayed with: the recorded configuration, or another one."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field

from trio_sched.cli.commands.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.recording.records import Configured


@define(eq=False)
class RecordedSettings:
    """What to schedule with, given what was recorded.

    Attributes:
        first: what was recorded first.
    """

    config: Path | None
    feature_gates: str | None
    selection: PluginSelection
    scratch: Path
    first: Configured | None = field(default=None, init=False)

    def __call__(self, recorded: Configured) -> DaemonSettings:
        """The given configuration and gates, or else those of *recorded*.

        Raises:
            ConfigError: they cannot be used.
        """
        self.first = self.first or recorded
        gates = _gates(recorded) if self.feature_gates is None else self.feature_gates
        if self.config is None:
            return self._recorded(recorded, gates)
        return settings_of(self.config, gates, self.selection, _version_flags(recorded))

    def as_recorded(self, recorded: Configured) -> DaemonSettings:
        """Those of *recorded*.

        Raises:
            ConfigError: they cannot be used.
        """
        return self._recorded(recorded, _gates(recorded))

    def _recorded(self, recorded: Configured, gates: str) -> DaemonSettings:
        file = self.scratch / "recorded.yaml"
        file.write_text(recorded.configuration, encoding="utf-8")
        try:
            return settings_of(file, gates, self.selection, _version_flags(recorded))
        except ConfigError as error:
            raise error.within("the recorded configuration cannot be used; give one with --config: ") from error


def _gates(recorded: Configured) -> str:
    return ",".join(f"{name}={str(value).lower()}" for name, value in sorted(recorded.gates.items()))


def _version_flags(recorded: Configured) -> list[str]:
    return [f"--emulated-version={recorded.emulated_version}"] if recorded.emulated_version else []
