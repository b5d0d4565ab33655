"""The entry point: flags alone run the daemon, a command's name runs that command.

Little is imported before it is known what will run: ``--version`` need not wait for numpy, and Ctrl-C while the rest is
imported ends the process without a word.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from trio_sched.cli.command_table import COMMANDS, NAME, LazyCommand, near_command
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.interruption import interruptible
from trio_sched.cli.process.standard_streams import OutputError, standard_error, standard_output
from trio_sched.errors import TrioSchedError, first_leaf

if TYPE_CHECKING:
    from trio_sched.cli.flags.flags import Flags
    from trio_sched.cli.flags.go_flags import FlagError

_ABOUT: Final = """\
A Kubernetes scheduler whose plugins are pip packages; takes the flags and the configuration of kube-scheduler.

Without a command it is the daemon: it assigns the pods of a cluster to nodes until it is told to end.
"""


_SEE_HELP: Final = f"See {NAME} --help."


def main(argv: Sequence[str] | None = None) -> ExitCode:
    """Run what *argv* (the process's arguments, unless given) names, and return the exit code."""
    # Nothing here multiplies matrices: the threads that numpy's BLAS starts would only cost time and memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # When the process ends, it gives all of its memory back at once: the collector need not free a cluster bit by bit.
    atexit.register(gc.freeze)
    code = ExitCode.OK
    with interruptible() as interruption, standard_error():
        try:
            with standard_output():
                code = _run(list(sys.argv[1:] if argv is None else argv))
        except* OutputError as group:
            code = first_leaf(group).report()
        except* KeyboardInterrupt:
            code = interruption.exit_code
    return code


def kubectl_why() -> ExitCode:
    """``kubectl why``, a plugin of kubectl: the command ``explain``."""
    return main(["explain", *sys.argv[1:]])


def help_text(columns: int | None = None) -> str:
    """What ``--help`` shows: the commands, then every flag of the daemon, in lines of *columns* if that is given."""
    from trio_sched.cli.flags.flag_table import own_usage
    from trio_sched.cli.flags.flags import flags_usage

    width = max(map(len, COMMANDS))
    commands = [f"  {name:<{width}}   {command.short_help}" for name, command in COMMANDS.items()]
    commands += [f"  {'version':<{width}}   Print the versions of Kubernetes and of {NAME}."]
    listed = "\n".join(["Commands:", *commands, "", f"{NAME} COMMAND --help tells more about one of them."])
    return f"{_ABOUT}\n{listed}\n\n{own_usage(columns)}\n{flags_usage(NAME, columns)}"


def _run(arguments: list[str]) -> ExitCode:
    if instruction := os.environ.get("_TRIO_SCHED_COMPLETE"):
        from trio_sched.cli.commands.completion import complete

        return complete(instruction)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    elif arguments == ["version"]:
        from trio_sched.cli.flags.version import version_text

        sys.stdout.write(f"{version_text('true', with_ours=True)}\n")
        return ExitCode.OK
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return _run_command(first, COMMANDS[first], arguments[1:])
    near = near_command(first) if first and not first.startswith("-") else None
    # What is near no command may be a kube-scheduler command line with a mistake; programs read its words.
    if near or (first and not first.startswith("-") and sys.stderr.isatty()):
        from trio_sched.go.text import shortened

        hint = f' Did you mean "{near}"?' if near else ""
        _say(f'Error: unknown command "{_printable(shortened(first))}" for "{NAME}".{hint} {_SEE_HELP}')
        return ExitCode.FAILURE
    return _run_daemon(arguments)


def _run_command(name: str, lazy: LazyCommand, arguments: list[str]) -> ExitCode:
    with _unwatched_imports():
        import click

        command = lazy.load()
    try:
        code = command.main(
            arguments,
            prog_name=f"{NAME} {name}",
            standalone_mode=False,
        )
    except click.ClickException as error:
        vars(error)["message"] = _printable(error.message)
        error.show()
        return ExitCode(error.exit_code)
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except TrioSchedError as error:
        _say(f"Error: {_printable(str(error))}")
        return ExitCode.FAILURE
    return ExitCode(code or 0)


def _run_daemon(arguments: list[str]) -> ExitCode:
    from trio_sched.cli.flags.flags import PROGRAM, ArgumentError, FlagError, parse_flags

    try:
        flags = parse_flags(arguments)
    except FlagError as error:
        _say(f"{_usage_before(error)}\nError: {_printable(str(error))}")
        return ExitCode.FAILURE
    except ArgumentError as error:
        name = NAME if sys.stderr.isatty() else PROGRAM
        _say(f"{_SEE_HELP}\nError: {_printable(error.text(name))}")
        return ExitCode.FAILURE
    if flags.help:
        sys.stdout.write(help_text(_terminal_columns(sys.stdout)))
        return ExitCode.OK
    if flags.prints_version and _has_right_gates(flags):
        from trio_sched.cli.flags.version import version_text

        sys.stdout.write(f"{version_text(flags.version, with_ours=sys.stdout.isatty())}\n")
        return ExitCode.OK
    with _unwatched_imports():
        from trio_sched.cli.commands.run import run
    return run(flags)


@contextmanager
def _unwatched_imports() -> Generator[None, None, None]:
    """Keep the garbage collector from what is imported: it is no garbage, and looking at it takes a tenth of a second.

    When the collector is enabled again, everything that was made meanwhile is new to it; so it is frozen first.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _usage_before(error: FlagError) -> str:
    """What stands before a flag's error: the usage as kube-scheduler prints it, for a person only where to find it."""
    from trio_sched.cli.flags.flags import PROGRAM, flags_usage, near_flag

    near = near_flag(error.unknown)
    hint = f"Did you mean --{near}? " if near else ""
    if sys.stderr.isatty():
        return f"{hint}{_SEE_HELP}"
    return f"{flags_usage(PROGRAM)}{hint and hint.rstrip() + chr(10)}"


def _has_right_gates(flags: Flags) -> bool:
    """Whether nothing is wrong with the feature gates; kube-scheduler reports that even before the version."""
    try:
        flags.feature_gates()
    except TrioSchedError:
        return False
    return True


def _terminal_columns(stream: TextIO) -> int | None:
    """How wide the terminal is that *stream* writes to; None if it writes to none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else None
    except (OSError, ValueError):
        return None


def _printable(text: str) -> str:
    """*text* without control characters, which an argument or a file can have."""
    from trio_sched.go.text import printable_lines

    return printable_lines(text)


def _say(text: str) -> None:
    print(text, file=sys.stderr)
