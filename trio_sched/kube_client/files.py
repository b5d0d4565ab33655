"""Reads the files that settings name; what keeps one from being read becomes an error with the words of Go."""

from trio_sched.documents.files import read_bytes
from trio_sched.go.text import printable
from trio_sched.kube_client.errors import KubeconfigError

UNREADABLE = (OSError, ValueError)
"""What Python raises for a file that cannot be opened; a path with a NUL is a ValueError."""


def read_file(path: str) -> bytes:
    """The bytes of *path*; none for an empty path.

    Raises:
        KubeconfigError: it cannot be read; with the text of kube-scheduler.
    """
    if not path:
        return b""
    try:
        return read_bytes(path)
    except UNREADABLE as problem:
        raise KubeconfigError(describe_open_error(path, problem)) from problem


def describe_open_error(path: str, problem: OSError | ValueError) -> str:
    """Why *path* cannot be opened, as Go's ``os.Open`` says it; control characters of the path are escaped."""
    return f"open {printable(path)}: {describe_os_error(problem)}"


def describe_os_error(problem: OSError | ValueError) -> str:
    """The system's text for *problem*, in lower case as kube-scheduler prints it."""
    if not isinstance(problem, OSError):
        return "invalid argument"  # what the system says about a NUL; Python does not ask it
    return (problem.strerror or str(problem)).lower()
