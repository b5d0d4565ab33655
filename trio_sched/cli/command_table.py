"""The commands beside the daemon: their names, and where they are; a command is imported when it is run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from trio_sched.errors import nearest_name

if TYPE_CHECKING:
    import click

NAME: Final = "trio-sched"
"""The name of the program."""


HELP_OPTIONS: Final = ["-h", "--help"]


class LazyCommand(NamedTuple):
    """A command that is not imported yet."""

    module: str
    attribute: str
    short_help: str

    def load(self) -> click.Command:
        """Import it."""
        command: click.Command = getattr(import_module(f"trio_sched.cli.commands.{self.module}"), self.attribute)
        # click keeps a command's option for help as it was when it was first asked for, by whomever.
        command.context_settings.setdefault("help_option_names", HELP_OPTIONS)
        return command


COMMANDS: Final = {
    "explain": LazyCommand("explain", "explain", "Say why a pod is pending, and what would change that."),
    "simulate": LazyCommand("simulate", "simulate", "Schedule a cluster on an embedded API server."),
    "compare": LazyCommand("compare", "compare", "Schedule a cluster in two ways, and show what differs."),
    "what-if": LazyCommand("what_if", "what_if", "Say what would become of pods if the cluster were changed."),
    "replay": LazyCommand(
        "replay", "replay_command", "Make the decisions of a recording again, and show which are others."
    ),
    "top": LazyCommand("top", "top", "Show a running trio-sched, or a cluster, in the terminal, live."),
    "shards": LazyCommand("shards", "shards", "Show who holds which shard, where replicas share the work."),
    "ui": LazyCommand("ui", "ui", "Show a running trio-sched, a cluster or a recording in the browser."),
    "plugins": LazyCommand("plugins", "plugins", "List the installed plugins."),
    "bench-plugin": LazyCommand("bench_plugin", "bench_plugin", "Measure what a plugin costs per pod."),
    "new-plugin": LazyCommand("new_plugin", "new_plugin", "Write a package with a plugin that works."),
    "check-config": LazyCommand(
        "check_config", "check_config", "Say everything that is wrong with configuration files."
    ),
    "rbac": LazyCommand("rbac", "rbac", "Print the roles that a configuration needs."),
    "convert-config": LazyCommand(
        "convert_config", "convert_config", "Print a configuration of a former version in v1."
    ),
    "completion": LazyCommand("completion", "completion", "Print a script that completes commands in a shell."),
}
"""By their names, in the order of ``--help``."""


def near_command(word: str) -> str | None:
    """The name of the command that *word* may have been meant to be; None if none is near."""
    return nearest_name(word, COMMANDS)
