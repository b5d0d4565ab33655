"""Requests as they come in, responses as they go out."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from attrs import define, field

from trio_sched.go.text import quote
from trio_sched.simulator.endpoints.watching import WatchStream

JSON_HEADERS = {"content-type": "application/json"}
_NO_PARAMETERS: dict[str, str] = {}


class Request:
    """One request; header names are lower case."""

    def __init__(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method, self.path, self.query, self.headers, self.body = method, path, query, headers, body
        self.parameters = dict(parse_qsl(query, keep_blank_values=True)) if query else _NO_PARAMETERS
        """The query, decoded; of a parameter given twice the last counts."""
        self.warnings: list[str] = []
        """What the client is to be told besides the response."""

    def flag(self, name: str) -> bool:
        """Whether the boolean parameter *name* is set."""
        return self.parameters.get(name, "false") in ("true", "1", "True", "TRUE")

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.parameters.get("dryRun") == "All"


def warning_header(warnings: list[str]) -> str:
    """*warnings* as the value of one ``Warning`` header."""
    return ", ".join(f"299 - {quote(text)}" for text in warnings).encode("ascii", "backslashreplace").decode()


@define(eq=False)
class Response:
    """One response; a watch answers with a stream of chunks, everything else with bytes."""

    status: int
    body: bytes | WatchStream
    headers: Mapping[str, str] = field(default=JSON_HEADERS)
