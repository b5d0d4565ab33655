"""Refusals in the form that the client accepts."""

import json

import pytest

from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving.negotiation import negotiate
from trio_sched.daemon.serving.pages.z_pages import flagz, statusz
from trio_sched.daemon.serving.status_bodies import forbidden, not_acceptable, unauthorized


def request(accept: str = "", *, agent: str = "", query: str = "") -> Request:
    headers = [(name, value) for name, value in (("accept", accept), ("user-agent", agent)) if value]
    return Request(method="GET", path="/x", target="/x", query=query, headers=headers)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "a/json"),
        ("*/*", "a/json"),
        ("a/*", "a/json"),
        ("a/yaml", "a/yaml"),
        ("a/yaml;q=0.5,a/json;q=0.4", "a/yaml"),
        ("*/*;q=1, a/yaml", "a/yaml"),
        ("text/html, a/yaml;q=0.1", "a/yaml"),
        ("text/html", None),
        ("a/json;as=Table", None),
        ("a/json;stream=watch", None),
        ("a/json;charset=utf-8", "a/json"),
        (",;=,/,*", "a/json"),
        ("a/json;q=junk", "a/json"),
    ],
)
def test_the_best_form_is_chosen(accept: str, chosen: str | None) -> None:
    accepted = negotiate(request(accept), ("a/json", "a/yaml"))
    assert (accepted.media_type if accepted else None) == chosen


@pytest.mark.parametrize(
    ("asked", "pretty"),
    [
        (request(agent="curl/8"), True),
        (request(agent="Wget/1"), True),
        (request(agent="Mozilla/4.0"), False),
        (request(query="pretty=true"), True),
        (request(query="pretty=junk", agent="curl/8"), False),
        (request(query="pretty=", agent="curl/8"), True),
        (request("application/json;pretty=1"), True),
        (request("image/png"), True),
        (request(), False),
    ],
)
def test_people_get_indented_json(asked: Request, pretty: bool) -> None:
    assert (b"\n  " in unauthorized(asked).body) is pretty


def test_markup_in_a_message_is_escaped_and_reasons_follow() -> None:
    body = forbidden(request(), user='<u>"', verb="get", path="/&", reason="because").body
    assert json.loads(body)["message"] == ('forbidden: User "&lt;u&gt;\\"" cannot get path "/&amp;": because')
    assert b"\\u0026lt;u" in body


def test_protobuf_is_kubernetes_envelope_with_a_status() -> None:
    body = unauthorized(request("application/vnd.kubernetes.protobuf")).body
    assert body.startswith(b"k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Status\x12")
    assert b"\x12\x07Failure\x1a\x0cUnauthorized\x22\x0cUnauthorized\x30\x91\x03" in body


def test_406_names_what_there_is_in_a_form_that_is_accepted() -> None:
    response = not_acceptable(request("application/yaml"), ("application/json", "application/yaml"))
    assert response.body.decode().splitlines()[:3] == ["apiVersion: v1", "code: 406", "kind: Status"]


async def test_z_pages_have_two_versions_and_the_older_one_warns() -> None:
    page = flagz({"b": "2", "a": "1"})
    for version, warns in (("v1beta1", False), ("v1alpha1", True)):
        response = await page(request(f"application/json;g=config.k8s.io;v={version};as=Flagz"))
        assert json.loads(response.body) == {
            "kind": "Flagz",
            "apiVersion": f"config.k8s.io/{version}",
            "metadata": {"name": "kube-scheduler"},
            "flags": {"a": "1", "b": "2"},
        }
        assert any(name == "warning" for name, _ in response.headers) is warns
    yaml = await page(request("application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz"))
    assert yaml.body.startswith(b"apiVersion: config.k8s.io/v1beta1\nflags:\n")
    assert (await page(request("application/json;g=config.k8s.io;v=v1;as=Flagz"))).status == 406
    assert (await page(request("text/plain;as=Flagz"))).status == 406
    text = (await page(request("*/*"))).body.decode().splitlines()
    assert (text[1], text[4][0], text[5][0]) == ("kube-scheduler flagz", "a", "b")


async def test_the_status_tells_versions_and_time() -> None:
    text = (await statusz("1.36.2", "1.35")(request())).body.decode()
    assert "Emulation version" in text
    assert "1.35\n" in text


async def test_the_status_names_kinds_that_cannot_be_watched_if_there_are_some() -> None:
    unwatched: dict[str, str] = {}
    page = statusz("1.36.2", "1.36", lambda: unwatched)
    json_of = "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
    assert "notWatched" not in json.loads((await page(request(json_of))).body)
    unwatched["DeviceTaintRule"] = "the server serves none of its versions"
    text = (await page(request())).body.decode()
    assert any(line.startswith("Not watched") and "DeviceTaintRule: the server" in line for line in text.splitlines())
    assert json.loads((await page(request(json_of))).body)["notWatched"] == unwatched
