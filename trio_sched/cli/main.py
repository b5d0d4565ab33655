"""The entry point: flags alone run the daemon, a command's name runs that command."""

import sys
from collections.abc import Sequence
from typing import Final

import click

from trio_sched.cli.convert_config import convert_config
from trio_sched.cli.exit_code import ExitCode
from trio_sched.cli.flags import ArgumentError, FlagError, flags_usage, parse_flags
from trio_sched.cli.plugins import plugins
from trio_sched.cli.run import run
from trio_sched.cli.simulate import simulate
from trio_sched.cli.version import version_text
from trio_sched.errors import TrioSchedError

NAME: Final = "trio-sched"
COMMANDS: Final[tuple[click.Command, ...]] = (simulate, plugins, convert_config)

_ABOUT: Final = """\
A Kubernetes scheduler whose plugins are pip packages; takes the flags and the configuration of kube-scheduler.

Without a command it is the daemon: it assigns the pods of a cluster to nodes until it is told to end.
"""


def main(argv: Sequence[str] | None = None) -> ExitCode:
    """Run what *argv* (the process's arguments, unless given) names, and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for command in COMMANDS:
        if arguments and arguments[0] == command.name:
            return _run_command(command, arguments[1:])
    return _run_daemon(arguments)


def help_text() -> str:
    """What ``--help`` shows: the commands, then every flag of the daemon."""
    width = max(len(command.name or "") for command in COMMANDS)
    commands = [f"  {command.name or '':<{width}}   {command.get_short_help_str(limit=90)}" for command in COMMANDS]
    listed = "\n".join(["Commands:", *commands, "", f"{NAME} COMMAND --help tells more about one of them."])
    return f"{_ABOUT}\n{listed}\n\n{flags_usage(NAME)}"


def _run_command(command: click.Command, arguments: list[str]) -> ExitCode:
    try:
        code = command.main(arguments, prog_name=f"{NAME} {command.name}", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return ExitCode(error.exit_code)
    except click.Abort:
        return ExitCode.FAILURE
    except TrioSchedError as error:
        click.echo(f"Error: {error}", err=True)
        return ExitCode.FAILURE
    return ExitCode(code or 0)


def _run_daemon(arguments: list[str]) -> ExitCode:
    try:
        flags = parse_flags(arguments)
        if flags.help:
            click.echo(help_text(), nl=False)
            return ExitCode.OK
        if flags.version:
            click.echo(version_text(flags.version))
            return ExitCode.OK
    except FlagError as error:
        click.echo(f"{flags_usage(NAME)}\nError: {error}", err=True)
        return ExitCode.FAILURE
    except ArgumentError as error:
        click.echo(f"Error: {error}{_suggestion(arguments)}", err=True)
        return ExitCode.FAILURE
    except TrioSchedError as error:
        click.echo(f"Error: {error}", err=True)
        return ExitCode.FAILURE
    return run(flags)


def _suggestion(arguments: list[str]) -> str:
    """The commands, shown if the first argument is neither a flag nor a command."""
    if arguments[0].startswith("-"):
        return ""
    return f"; the commands are {_listed_commands()}, see {NAME} --help"


def _listed_commands() -> str:
    names = [str(command.name) for command in COMMANDS]
    return f"{', '.join(names[:-1])} and {names[-1]}"
