"""Whatever a client sends is answered, and never with a fault of the server."""

import copy
import json
import logging
import re
from collections import Counter
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest
import trio
from manifest_mutations import valid_objects

from trio_sched.simulator import ApiServer, serve
from trio_sched.simulator.endpoints.reviews import REVIEW_TYPES
from trio_sched.simulator.endpoints.watching import WatchStream

Json = dict[str, Any]

DEEP_JSON = b'{"metadata":' + b'{"a":' * 3000 + b"1" + b"}" * 3001
UNFIT = re.compile(rb'"message":"(failed to create typed patch object|Unknown patch type)')
VALUES = (
    *(None, True, 0, -1, 1, 1 << 40, 1 << 63, 1.5, 1e308, "", "x", "a" * 300, "ä", "\x00", "1Gi", "-1", "²"),
    *(
        [],
        {},
        [None],
        [{}],
        [[]],
        {"a": None},
        {"": {}},
        {"$patch": "replace"},
        {"$patch": "x"},
        [{"$patch": "delete"}],
    ),
    *({"name": 1}, {"$retainKeys": 1}, {"$setElementOrder/containers": 1}, {"$deleteFromPrimitiveList/finalizers": 1}),
)
BODIES = (
    *(b"", b"{", b"[]", b"null", b"NaN", b'{"a":NaN}', b"\xff\xfe", b"1", b'"x"', b"a: &a [*a]", b"- - -", b"{a: {b"),
    *(b"k8s\0", b"k8s\0\x0a\x02", b"k8s\0" + bytes(range(64)), b"[" * 100_000, DEEP_JSON, b'{"a":1e400}', b"---\n---"),
)
PARAMETERS = (
    *("limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector", "watch"),
    *("timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents", "dryRun", "fieldManager", "force", "includeObject"),
    *("fieldValidation", "propagationPolicy", "gracePeriodSeconds", "orphanDependents", "verbose"),
)
ARGUMENTS = (
    *("", "1", "0", "-1", "true", "false", "All", "x", "a=b", "a in (b,c)", "a in (", "!a", "a>1", "Exact", "%ff", "²"),
    *("metadata.name=web", "spec.nodeName!=x", "zz=y", "NotOlderThan", "Orphan", "Foreground", "Strict", "9" * 5000),
    *("eyJ2ZXJzaW9uIjoxLCJrZXkiOiJhIn0", "99999999999999999999"),
)
PATCHES = (
    *("application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"),
    "application/apply-patch+yaml",
)
TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    ";;=",
    *PATCHES,
)
ACCEPTED = (
    *("", "*/*", "application/json", "application/yaml", "text/html", ";,="),
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
)
PATHS = (
    *(
        "/",
        "",
        "//",
        "/api",
        "/apis",
        "/api/v1",
        "/api/v1/",
        "/apis/apps",
        "/apis/apps/v1",
        "/openapi/v2",
        "/openapi/v3",
    ),
    *("/openapi/v3/apis/apps/v1", "/livez/x", "/readyz", "/version/", "/api/v1/watch/pods", "/../..", "/api//pods"),
    *("/apis///", "/api/v1/namespaces//pods", "/\x00", "/é", "/apis/apps/v9/deployments"),
)
SCALED = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
COLUMNS = [{"name": "A", "type": "string", "jsonPath": ".spec.slots[*].a"}]
RACKS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "racks.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "racks", "singular": "rack", "kind": "Rack"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}, "scale": SCALED},
                "additionalPrinterColumns": COLUMNS,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
RACK: Json = {
    "apiVersion": "example.com/v1",
    "kind": "Rack",
    "metadata": {"name": "r", "namespace": "default"},
    "spec": {"replicas": 1, "slots": [{"a": "b"}]},
}


class RandomRequests:
    """Requests about objects that are there, with up to a few mistakes in them."""

    def __init__(self, server: ApiServer, seed: int) -> None:
        self.server, self.random = server, Random(seed)
        self.objects = [RACKS, *valid_objects(), RACK]

    def next(self) -> tuple[str, str, str, dict[str, str], bytes]:
        choose = self.random.choice
        method = choose(("GET", "GET", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "FOO"))
        fields: Any = copy.deepcopy(choose(self.objects))
        path = self.path_of(fields, method)
        content_type = choose(PATCHES if method == "PATCH" and self.random.random() < 0.9 else TYPES[:2] * 4 + TYPES)
        query = [f"{choose(PARAMETERS)}={choose(ARGUMENTS)}" for _ in range(choose((0, 0, 0, 1, 2)))]
        if content_type == PATCHES[-1]:
            query += ["fieldManager=" + choose("ab"), "force=" + choose(("true", "false"))]
        headers = {"content-type": content_type, "accept": choose(ACCEPTED[:3] * 3 + ACCEPTED), "user-agent": "x/1"}
        body = b"" if method in ("GET", "HEAD") else self.body(fields, content_type)
        return method, path, "&".join(query), headers, body

    def path_of(self, fields: Json, method: str) -> str:
        choose = self.random.choice
        if self.random.random() < 0.05:
            review = choose(REVIEW_TYPES)
            return f"/apis/{review.group}/{review.version}/{review.plural}"
        if self.random.random() < 0.05:
            return str(choose(PATHS))
        resource = self.server.state.types.of_kind(fields["apiVersion"], fields["kind"])
        if resource is None:
            return "/apis/example.com/v1/racks"
        path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        if resource.namespaced:
            path += f"/namespaces/{fields['metadata'].get('namespace') or 'default'}"
        path += f"/{resource.plural}"
        if method != "POST" or self.random.random() < 0.2:
            path += f"/{fields['metadata']['name']}"
            if resource.subresources and self.random.random() < 0.3:
                path += f"/{choose(resource.subresources)}"
        return path

    def body(self, fields: Any, content_type: str) -> bytes:
        choose = self.random.choice
        if self.random.random() < 0.07:
            return bytes(choose(BODIES))
        if "json-patch" in content_type:
            return json.dumps([self.operation(fields) for _ in range(choose((0, 1, 2, 3)))]).encode()
        if self.random.random() < 0.1:
            fields = {
                name: copy.deepcopy(choose(VALUES))
                for name in ("spec", "metadata", "target", "deleteOptions", "preconditions")
            }
        for _ in range(choose((0, 1, 1, 2, 5))):
            self.spoil(fields)
        return json.dumps(fields).encode()

    def operation(self, fields: Any) -> Any:
        choose = self.random.choice
        steps = [step for step in self.place(fields)[1] if self.random.random() < 0.9]
        path = "".join(f"/{step}" for step in steps) + choose(("", "", "/-", "/0", "/²", "/" + "9" * 5000, "/~2"))
        operation = choose(("add", "remove", "replace", "test", "move", "copy", "x", 1))
        return {"op": operation, "path": choose((path, path, path, 1)), "value": choose(VALUES), "from": path}

    def spoil(self, fields: Any) -> None:
        """Put some value in a place of *fields*."""
        holder, steps = self.place(fields)
        if steps:
            holder[steps[-1]] = copy.deepcopy(self.random.choice(VALUES))

    def place(self, fields: Any) -> tuple[Any, list[Any]]:
        """A place in *fields*: what holds it, and the steps to it."""
        holder, steps, value = fields, [], fields
        while isinstance(value, dict | list) and value and (not steps or self.random.random() < 0.85):
            step = self.random.choice(list(value) if isinstance(value, dict) else range(len(value)))
            holder, value = value, value[step]
            steps.append(step)
        return holder, steps


async def answer(server: ApiServer, request: tuple[str, str, str, dict[str, str], bytes]) -> tuple[int, bool]:
    """The status of the answer, and whether a patch is refused that fits no object."""
    response = await server.handle(*request)
    if isinstance(response.body, WatchStream):
        with trio.move_on_after(0):
            await anext(response.body, None)
        response.body.close()
        return response.status, False
    is_unfit = request[0] == "PATCH" and response.status == 500 and UNFIT.search(response.body) is not None
    return response.status, is_unfit


@pytest.mark.parametrize("seed", range(2))
async def test_no_request_makes_the_server_fail(server: ApiServer, seed: int) -> None:
    requests, statuses, unfit = RandomRequests(server, seed), Counter[int](), 0
    for number in range(1500):
        if number % 300 == 0:
            for fields in requests.objects:
                body = json.dumps(fields).encode()
                path = requests_path(server, fields)
                await server.handle("POST", path, "", {"content-type": "application/json"}, body)
        request = requests.next()
        try:
            status, is_unfit = await answer(server, request)
        except Exception as error:
            error.add_note(repr(request)[:3000])
            raise
        statuses[status] += 1
        unfit += is_unfit
    assert set(statuses) <= {200, 201, 400, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 504}
    assert statuses[200] > 300
    # What a real server also answers with: a version in the future, and a binding without a target.
    assert statuses[500] - unfit <= 10
    assert unfit <= 50


def requests_path(server: ApiServer, fields: Json) -> str:
    resource = server.state.types.of_kind(fields["apiVersion"], fields["kind"])
    assert resource is not None
    path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    namespace = fields["metadata"].get("namespace") or "default"
    return f"{path}/namespaces/{namespace}/{resource.plural}" if resource.namespaced else f"{path}/{resource.plural}"


EXEC = b"GET /api/v1/namespaces/default/pods/p/exec HTTP/1.1\r\nHost: x\r\n"
RAW = (
    b"GET /api/v1/pods HTTP/1.1\r\n\r\n",
    b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{",
    b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /%ff%00?%ff=%zz HTTP/1.1\r\nHost: x\r\nX: \xff\r\nAccept: \xe9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 50,
    b"GET " + b"/a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    EXEC + b"Upgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n",
    EXEC + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 1\r\n\r\n",
    b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" + b"[" * 4_000_000,
    b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n",
)


async def test_broken_requests_on_a_socket_disturb_nobody(
    server: ApiServer, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    address = await nursery.start(partial(serve, server))
    port = int(address.rpartition(":")[2])

    async def send(data: bytes) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        async with stream:
            with suppress(trio.BrokenResourceError), trio.move_on_after(0.5):
                await stream.send_all(data)
                await stream.receive_some(1 << 16)

    with caplog.at_level(logging.WARNING), trio.fail_after(20):
        async with trio.open_nursery() as clients:
            for data in RAW:
                clients.start_soon(send, data)
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200" in await stream.receive_some(1 << 16)
        await stream.aclose()
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []
