"""Replays requests to the HTTPS port: who may do what, and what the endpoints answer."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from client_authority import client_context
from http_servers import HttpServers, filled, running_servers
from https_client import Answer, exchange
from restored_logging import restored_logging
from scoreboard import Case, GoldenRun

AREA: Final = "http"
_COMPARED: Final = (
    "content-type",
    "cache-control",
    "x-content-type-options",
    "location",
    "allow",
    "www-authenticate",
    "retry-after",
    "connection",
    "process-start-time-unix",
)
_SEPARATOR: Final = re.compile(r"(?:: |:|=| ) ?")


async def test_requests_are_answered_as_kube_scheduler_answers_them(golden: GoldenRun, tmp_path: Path) -> None:
    setup = golden.directory / "http-setup.json"
    if not golden.has(AREA):
        pytest.skip("there are no recordings")
    cases = list(golden.cases(AREA, sample=1_000))  # all of them: later ones depend on earlier ones
    with restored_logging(), trio.fail_after(120):
        async with running_servers(json.loads(setup.read_text()), tmp_path) as servers:
            for case in cases:
                _compare(golden, servers, case, await _send(servers, case, tmp_path))
    golden.check()


async def _send(servers: HttpServers, case: Case, folder: Path) -> Answer:
    request = case["request"]
    tokens = {f"{{token:{role}}}": servers.token(role) for role in servers.setup["users"]}
    headers = [(name, filled(value, tokens)) for name, value in request.get("headers", {}).items()]
    if "token" in request:
        headers.append(("Authorization", f"Bearer {servers.token(request['token'])}"))
    role = request.get("clientCert")
    context = client_context(folder, servers.certificate(role) if role else None)
    port = servers.ports[case["server"]]
    body = str(request.get("body") or "").encode()
    is_plain = request.get("scheme") == "http"
    with trio.fail_after(20):
        return await exchange(
            port, request["method"], request["path"], context=None if is_plain else context, headers=headers, body=body
        )


def _compare(golden: GoldenRun, servers: HttpServers, case: Case, answer: Answer) -> None:
    expected, name = case["expect"], case["name"]
    got_body = _with_placeholders(answer.body.decode("utf-8", "replace"), servers.values[case["server"]])
    agreed = answer.status == expected["status"]
    golden.record(
        AREA, "status", agreed, f"{name}: expected {expected['status']}, got {answer.status}: {got_body[:200]}"
    )
    wanted = {key: value for key, value in expected["headers"].items() if key != "content-length"}
    got = {key: value for key, value in answer.headers.items() if key in _COMPARED}
    if wanted.get("process-start-time-unix") == "*" and got.get("process-start-time-unix", "").isdigit():
        got["process-start-time-unix"] = "*"
    if "body" in expected and "content-length" in expected["headers"]:
        wanted["content-length"] = expected["headers"]["content-length"]
        got["content-length"] = answer.headers.get("content-length", "")
    golden.record(AREA, "headers", got == wanted, f"{name}: expected {wanted}, got {got}")
    meant = _with_keys_redacted(expected)
    if meant != expected:
        difference = _body_difference(meant, got_body)
        golden.record_on_purpose(AREA, "private-keys", not difference, f"{name}: we show no private key: {difference}")
    elif difference := _body_difference(expected, got_body):
        golden.record(AREA, "body", False, f"{name}: {difference}")
    else:
        golden.record(AREA, "body", True, "")


def _body_difference(expected: dict[str, Any], got: str) -> str:
    """What is wrong with the body; empty if nothing is."""
    if "body" in expected and got != expected["body"]:
        return f"expected {expected['body']!r}, got {got!r}"
    if "bodyStart" in expected and got[: len(expected["bodyStart"])] != expected["bodyStart"]:
        return f"expected it to begin with {expected['bodyStart']!r}, got {got[:250]!r}"
    if "json" in expected:
        parsed = json.loads(got)
        if "jsonKeys" in expected:
            if sorted(parsed) != sorted(expected["jsonKeys"]):
                return f"expected the keys {expected['jsonKeys']}, got {sorted(parsed)}"
            parsed = {key: parsed[key] for key in expected["json"]}
        if parsed != expected["json"]:
            return _json_difference(expected["json"], parsed)
    if "entries" in expected:
        return _entries_difference(expected, got)
    return ""


def _with_keys_redacted(value: Any) -> Any:
    """What is expected, without the private keys of extenders, which kube-scheduler shows in its configuration."""
    if isinstance(value, dict):
        return {
            key: "--- REDACTED ---" if key == "keyData" else _with_keys_redacted(inner) for key, inner in value.items()
        }
    return [_with_keys_redacted(inner) for inner in value] if isinstance(value, list) else value


def _entries_difference(expected: dict[str, Any], got: str) -> str:
    lines = got.split("\n")
    heading = expected["heading"]
    entries = {}
    for line in lines:
        key = next(
            (key for key in expected["entries"] if line.startswith(key) and _SEPARATOR.match(line, len(key))), ""
        )
        if key and line not in heading:
            entries[key] = line[len(key) :].strip(": =").strip()
    rest = [line for line in lines if line in heading]
    wanted = {key: value for key, value in expected["entries"].items() if value != "*"}
    found = {key: entries.get(key) for key in wanted}
    if found != wanted or entries.keys() != expected["entries"].keys():
        return _json_difference(wanted, found) or f"expected the keys {list(expected['entries'])}, got {list(entries)}"
    return "" if rest == heading else f"expected the heading {heading}, got {rest}"


def _json_difference(wanted: Any, got: Any, path: str = "") -> str:
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in sorted(wanted.keys() | got.keys()):
            if wanted.get(key, ...) != got.get(key, ...):
                return _json_difference(wanted.get(key, ...), got.get(key, ...), f"{path}.{key}")
        return ""
    return f"at {path or 'the top'} expected {wanted!r}, got {got!r}"


def _with_placeholders(text: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        if len(value) > 5 or placeholder == "{port}":
            text = text.replace(value, placeholder)
    return text
