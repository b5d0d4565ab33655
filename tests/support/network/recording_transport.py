import json
from typing import Any

import httpx
import trio
from attrs import define, field


@define(eq=False)
class RecordingTransport(httpx.AsyncBaseTransport):
    """Records requests; answers with what is set, or with the request's own body."""

    answer: httpx.Response | None = None
    asked: list[tuple[str, str, str | None, Any]] = field(factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.lowlevel.checkpoint()
        target = request.url.raw_path.decode()
        content_type = request.headers.get("content-type")
        self.asked.append((request.method, target, content_type, json.loads(request.content or b"null")))
        if self.answer is None:
            return httpx.Response(200, content=request.content or b"{}")
        return httpx.Response(self.answer.status_code, content=self.answer.content)
