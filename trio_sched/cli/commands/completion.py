"""``trio-sched completion``: the script with which a shell completes commands, flags and files."""

import os
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from trio_sched.cli.command_table import COMMANDS, NAME
from trio_sched.cli.flags.flag_table import ALL_SECTIONS
from trio_sched.cli.process.exit_code import ExitCode

VARIABLE: Final = "_TRIO_SCHED_COMPLETE"
"""The environment variable with which the script asks the program for completions."""

_HELP: Final = """\
Print a script for SHELL that completes commands, flags and files.

\b
bash: eval "$(trio-sched completion bash)"               in ~/.bashrc
zsh:  eval "$(trio-sched completion zsh)"                in ~/.zshrc
fish: trio-sched completion fish > ~/.config/fish/completions/trio-sched.fish
"""
_FILES: Final = ("config", "kubeconfig", "file", "dir", "to", "manifest", "plugin")


class _Program(click.Group):
    """The whole command line, for completion only: `go_flags` parses the flags of the daemon."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        return COMMANDS[cmd_name].load() if cmd_name in COMMANDS else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Not the base class's, which imports every command for the sake of its help.
        named = [
            CompletionItem(name, help=command.short_help)
            for name, command in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]


@click.command(help=_HELP, short_help="Print a script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> ExitCode:
    """Print the script for *shell*."""
    found = get_completion_class(shell)
    assert found is not None  # click has these three
    click.echo(found(_program(), {}, NAME, VARIABLE).source())
    return ExitCode.OK


def complete(instruction: str) -> ExitCode:
    """Answer the shell's script: *instruction* is ``bash_complete`` for instance, the rest is in the environment."""
    shell, _, wanted = instruction.partition("_")
    found = get_completion_class(shell)
    if found is None or wanted != "complete":
        return ExitCode.FAILURE
    try:
        completions = found(_program(), {}, NAME, VARIABLE).complete()
    except (KeyError, ValueError):  # the variables with the words are missing or wrong: it was no script that asked
        return ExitCode.FAILURE
    click.echo(os.fsencode(completions))  # the word so far can be a file's name, which need not be UTF-8
    return ExitCode.OK


def _program() -> _Program:
    options = [
        click.Option(
            [f"--{flag.name}"],
            help=flag.help,
            is_flag=flag.type.alone is not None,
            type=click.Path() if flag.name.rpartition("-")[2] in _FILES else None,
        )
        for flags in ALL_SECTIONS.values()
        for flag in flags
    ]
    return _Program(NAME, params=[*options], add_help_option=False)
