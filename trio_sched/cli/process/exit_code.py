"""The exit codes of all commands, which scripts rely on; the file of each command says which it ends with."""

from enum import IntEnum, unique


@unique
class ExitCode(IntEnum):
    """The exit code of a command."""

    OK = 0
    """Success; for the daemon with an election also: stopped by a signal, and ended in order."""
    FAILURE = 1
    """Failure: a start that was refused, a wrong flag of the daemon, a lost lease, output that cannot be written, a
    decision that ``--shadow-fail-on`` names."""
    USAGE = 2
    """A usage error of a command other than the daemon; nothing was done. Of the daemon: ended by SIGQUIT."""
    NO_ANSWER = 3
    """No answer of a command whose other codes are answers: something is wrong with cluster, files or command line."""
    CHANGED = 4
    """The cluster is not as it was when the answer was given that ``what-if --if-unchanged`` names."""
    HUNG_UP = 129
    """Ended by SIGHUP before or without a daemon that stops in order; as shells count, 128 and the signal's number."""
    INTERRUPTED = 130
    """The command was ended by SIGINT (Ctrl-C)."""
    BROKEN_PIPE = 141
    """Whoever read the standard output, such as ``head``, has gone; nothing is said about it."""
    TERMINATED = 143
    """As `HUNG_UP`, by SIGTERM."""
