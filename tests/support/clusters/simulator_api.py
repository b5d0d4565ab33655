from typing import Any

import msgspec

from trio_sched.simulator import ApiServer
from trio_sched.simulator.endpoints.messages import Response

Json = dict[str, Any]


class Api:
    """The shortest way to send a request to a simulated API server and read the answer."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    async def raw(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", accept: str = ""
    ) -> Response:
        path, _, query = path.partition("?")
        if body is not None and not isinstance(body, bytes):
            body = msgspec.json.encode(body)
        headers = {"content-type": content_type, "accept": accept}
        return await self.server.handle(method, path, query, headers, body or b"")

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "",
        expect: int | None = None,
    ) -> Json:
        response = await self.raw(method, path, body, content_type=content_type, accept=accept)
        assert isinstance(response.body, bytes)
        answer: Json = msgspec.json.decode(response.body)
        wanted = expect if expect is not None else (201 if method == "POST" else 200)
        assert response.status == wanted, answer
        return answer

    async def create_pod(self, name: str, namespace: str = "default", **spec: Any) -> Json:
        labels = spec.pop("labels", {})
        annotations = spec.pop("annotations", {})
        spec = {"containers": [{"name": "main", "image": "app:1"}], **spec}
        metadata = {"name": name, "labels": labels, "annotations": annotations}
        return await self("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": spec})

    async def create_node(self, name: str) -> Json:
        status = {"capacity": {"cpu": "4"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
        return await self("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": status})

    async def bind(self, pod: str, node: str, **metadata: Any) -> Json:
        body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": pod, **metadata}}
        return await self(
            "POST", f"/api/v1/namespaces/default/pods/{pod}/binding", {**body, "target": {"kind": "Node", "name": node}}
        )

    async def pod(self, name: str) -> Json:
        return await self("GET", f"/api/v1/namespaces/default/pods/{name}")
