"""Stands in front of the simulator as an API server of another minor version: other versions and shapes of kinds."""

import json
from typing import Any

import httpx
from attrs import define, field

from trio_sched.kube_client.versions.api_versions import VERSIONED

_STORED = {"resource.k8s.io": "v1", "scheduling.k8s.io": "v1alpha2"}
"""The versions in which the simulator gives what is asked for here."""


@define(eq=False)
class OldServer(httpx.AsyncBaseTransport):
    """Serves, of the groups with several versions, those that are set, as `VERSIONED` says that they look.

    What is watched has metadata only where the shapes differ: what is listed shows the shapes.
    """

    inner: httpx.AsyncBaseTransport
    served: dict[str, tuple[str, ...]]
    """Group → versions."""
    discovery: Any = None
    """What is answered in place of the discovery: bytes, a status, or None for what is served."""
    asked: list[str] = field(factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        self.asked.append(f"{request.method} {path.partition('?')[0]}")
        parts = path.partition("?")[0].split("/")
        if parts[1:] == ["apis"]:
            return self._discovered()
        if len(parts) < 4 or parts[1] != "apis" or parts[2] not in self.served:
            return await self.inner.handle_async_request(request)
        group, version = parts[2], parts[3]
        if version not in self.served[group]:
            if "priorityclasses" in path:
                return await self.inner.handle_async_request(request)
            return httpx.Response(404, text="404 page not found\n", headers={"content-type": "text/plain"})
        row = VERSIONED[group, next(one for one in parts if (group, one) in VERSIONED)]
        shape = next(one for one in row.versions if one.name == version)
        stored = path.replace(f"/{group}/{version}/", f"/{group}/{_STORED[group]}/", 1)
        body = request.content
        if body and shape.read is not None:
            body = json.dumps(shape.read(json.loads(body))).encode()
        body = body.replace(f"{group}/{version}".encode(), f"{group}/{_STORED[group]}".encode())
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
        url = request.url.copy_with(raw_path=stored.encode())
        answer = await self.inner.handle_async_request(
            httpx.Request(request.method, url, headers=headers, content=body)
        )
        if "watch=true" in path or shape.write is None:
            return answer
        found = json.loads(await answer.aread())
        changed = {**found, "items": [shape.write(one) for one in found["items"]]} if "items" in found else found
        return httpx.Response(answer.status_code, json=shape.write(changed))

    def _discovered(self) -> httpx.Response:
        if isinstance(self.discovery, int):
            return httpx.Response(self.discovery, text="no")
        if self.discovery is not None:
            return httpx.Response(200, content=self.discovery)
        return httpx.Response(200, content=aggregated(self.served))


def aggregated(served: dict[str, tuple[str, ...]], freshness: str = "Current") -> bytes:
    """The APIGroupDiscoveryList of a server that serves all kinds of `VERSIONED` in these versions."""
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {
                    "version": version,
                    "freshness": freshness,
                    "resources": [
                        {"resource": plural}
                        for (of, plural), row in VERSIONED.items()
                        if of == group and version in [one.name for one in row.versions]
                    ],
                }
                for version in versions
            ],
        }
        for group, versions in served.items()
    ]
    return json.dumps({"kind": "APIGroupDiscoveryList", "items": items}).encode()
