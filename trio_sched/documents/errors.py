"""What is wrong with a document, and where."""

from typing import Final

from trio_sched.errors import TrioSchedError

MAX_DEPTH: Final = 250
"""How many levels lists and mappings may be nested: several times what any object of Kubernetes has, and little enough
for Python's own recursion limit wherever such a value is walked through."""


class DocumentError(TrioSchedError):
    """A text that is not the YAML or JSON that it should be.

    Args:
        text: the whole message, in the words of Kubernetes' YAML and JSON libraries.
        line: where it is, from 1; 0 if that is not known.
        column: likewise.
        problem: the message without its place; *text* if not given.
    """

    def __init__(self, text: str, *, line: int = 0, column: int = 0, problem: str = "") -> None:
        super().__init__(text)
        self.line, self.column = line, column
        self.problem = problem or text
        self.place = f"line {line}, column {column}" if line else ""
