"""Which handler answers which path: exact paths first, then the longest prefix."""

from __future__ import annotations

from attrs import define, field

from trio_sched.daemon.serving.messages import Handler, Request, Response, not_found


@define(eq=False)
class Routes:
    """The handlers by path; a path is compared as it is, without redirects or cleaning."""

    exact: dict[str, Handler] = field(factory=dict)
    prefixes: dict[str, Handler] = field(factory=dict)

    async def __call__(self, request: Request) -> Response:
        """Answer *request*; 404 if no handler is for its path."""
        handler = self.exact.get(request.path) or self._by_prefix(request.path)
        return not_found() if handler is None else await handler(request)

    def _by_prefix(self, path: str) -> Handler | None:
        matching = [prefix for prefix in self.prefixes if path.startswith(prefix)]
        return self.prefixes[max(matching, key=len)] if matching else None
