"""The exit codes of the commands; scripts and service managers rely on these numbers."""

from enum import IntEnum, unique


@unique
class ExitCode(IntEnum):
    """The exit code of a command."""

    OK = 0
    """Success; for the daemon with an election also: stopped by a signal, and ended in order."""
    FAILURE = 1
    """Failure: a start that was refused, a wrong flag of the daemon, a lost lease."""
    USAGE = 2
    """A usage error of a command other than the daemon; nothing was done."""
