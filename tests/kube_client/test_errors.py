import msgspec
import pytest

from trio_sched.kube_client.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    ServerError,
    TooManyRequests,
    error_from_reply,
)


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (403, "Forbidden", Forbidden),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (422, "Invalid", ApiError),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (504, "Timeout", ServerError),
    ],
)
def test_errors_have_a_class_for_each_way_to_handle_them(code: int, reason: str, kind: type[ApiError]) -> None:
    body = msgspec.json.encode({"kind": "Status", "code": code, "reason": reason, "message": "m"})
    error = error_from_reply(code, body, request="GET /x")
    assert type(error) is kind
    assert (error.code, error.reason, str(error)) == (code, reason, "m")


def test_a_reply_that_is_no_status_gets_a_generated_message() -> None:
    error = error_from_reply(502, b"<html>Bad gateway</html>", request="GET /x")
    assert type(error) is ServerError
    assert str(error) == "the server responded with the status code 502 (GET /x): <html>Bad gateway</html>"
    assert str(error_from_reply(404, b"\xff", request="GET /y")).startswith(
        "the server could not find the requested resource (GET /y)"
    )


def test_a_reply_nested_too_deep_is_an_error_by_its_code() -> None:
    error = error_from_reply(500, b'{"kind":"Status","details":' + b"[" * 60_000, request="GET /x")
    assert (error.code, str(error)[:18]) == (500, "an error on the se")
