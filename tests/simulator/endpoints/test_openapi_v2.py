from trio_sched.simulator import ApiServer
from trio_sched.simulator.endpoints.openapi_v2 import MEDIA_TYPE


async def test_the_document_names_the_patch_of_every_kind_and_what_it_takes() -> None:
    reply = await ApiServer().handle("GET", "/openapi/v2", "timeout=32s", {}, b"")

    assert reply.status == 200
    assert reply.headers["content-type"] == MEDIA_TYPE
    assert isinstance(reply.body, bytes)
    assert reply.body.startswith(b"\x0a\x032.0")  # field 1: the version of the format
    assert b"/api/v1/namespaces/{name}" in reply.body
    assert b'group: ""\nkind: Namespace\nversion: v1\n' in reply.body
    assert reply.body.count(b"fieldValidation") == reply.body.count(b"x-kubernetes-group-version-kind")
