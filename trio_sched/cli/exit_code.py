"""How the commands end; scripts and service managers rely on these numbers."""

from enum import IntEnum, unique


@unique
class ExitCode(IntEnum):
    """What a command's end means."""

    OK = 0
    """It did what it was asked to; for the daemon with an election also: told to end, and ended in order."""
    FAILURE = 1
    """It could not: a start that was refused, a wrong flag of the daemon, a lost lease."""
    USAGE = 2
    """A command beside the daemon was called wrongly; nothing was done."""
