"""Reads the responses of the Prometheus HTTP API: one value per node, whatever the server sends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trio_sched.plugin_api import Http, HttpFailed, HttpResponse

MAX_BODY_BYTES: Final = 4 * 2**20
"""Decoding more would hold up the scheduler; 5,000 nodes need less than a tenth."""
MAX_TOKEN_BYTES: Final = 16_384
_HIGHEST_SHARE: Final = 2.0
"""The largest share of a capacity; more must be another unit."""


class UnusableData(Exception):
    """The endpoint has sent nothing that can be used, or could not be asked; the text says why and what to do."""


def read_token(path: str) -> str:
    """The token in the file *path*, which may be replaced at any time.

    Raises:
        UnusableData: there is none; the text does not contain it.
    """
    try:
        with Path(path).open("rb") as file:
            token = file.read(MAX_TOKEN_BYTES + 1).strip().decode("ascii")
    except OSError as problem:
        raise UnusableData(f"tokenFile {path!r} cannot be read: {problem.strerror or problem}") from None
    except UnicodeDecodeError:
        raise UnusableData(f"tokenFile {path!r} contains what is no token") from None
    if not token or len(token) > MAX_TOKEN_BYTES or not token.isprintable():
        raise UnusableData(f"tokenFile {path!r} contains no token, or more than one line")
    return token


async def query(
    http: Http, address: str, expression: str, node_label: str, *, token: str, ca_file: str, timeout_seconds: float
) -> dict[str, float]:
    """Ask for *expression* now: node → share of its capacity; of several series of a node the highest counts.

    Raises:
        UnusableData: there is no usable answer.
    """
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        response = await http.get(
            f"{address.rstrip('/')}/api/v1/query",
            params={"query": expression},
            headers=headers,
            timeout_seconds=timeout_seconds,
            ca_file=ca_file,
        )
    except (HttpFailed, ValueError) as problem:
        raise UnusableData(str(problem)) from problem
    return read_vector(response, node_label)


def read_vector(response: HttpResponse, node_label: str) -> dict[str, float]:
    """The values of an instant vector, by node; series without the label, and values that are no numbers, are left out.

    Raises:
        UnusableData: it is no such response, or its values are no shares.
    """
    if len(response.body) > MAX_BODY_BYTES:
        size = f"{len(response.body) / 2**20:.1f} MiB"
        raise UnusableData(f"the response has {size}, at most 4 MiB are read: have the query return a series per node")
    try:
        body = response.json()
    except HttpFailed as problem:
        raise UnusableData(str(problem)) from problem
    if not isinstance(body, Mapping) or body.get("status") != "success" or not response.is_success:
        raise UnusableData(f"status {response.status}: {_error_of(body)}")
    data = body.get("data")
    series = data.get("result") if isinstance(data, Mapping) and data.get("resultType") == "vector" else None
    if not isinstance(series, list):
        raise UnusableData("the response is no instant vector: the query must return one value per node")
    found: dict[str, float] = {}
    for one in series:
        node, value = _node_of(one, node_label), _value_of(one)
        if not node or value is None:
            continue
        if value > _HIGHEST_SHARE:
            raise UnusableData(
                f"the value of {node[:63]!r} is {value:g}: the query must return a share from 0 to 1, so divide "
                "per cents by 100 and amounts by the capacity"
            )
        found[node] = max(found.get(node, 0.0), min(max(value, 0.0), 1.0))
    if not found:
        what = (
            f"none of {len(series)} series has a label {node_label!r} and a number" if series else "there is no series"
        )
        raise UnusableData(f"{what}: check query and nodeLabel")
    return found


def _error_of(body: Any) -> str:
    error = body.get("error") if isinstance(body, Mapping) else None
    return error[:200] if isinstance(error, str) else "the response is none of the Prometheus API"


def _node_of(series: Any, label: str) -> str:
    """The value of the label without a port: node_exporter is often scraped as ``node:9100``."""
    labels = series.get("metric") if isinstance(series, Mapping) else None
    name = labels.get(label) if isinstance(labels, Mapping) else None
    if not isinstance(name, str):
        return ""
    host, colon, port = name.rpartition(":")
    return host if colon and port.isdigit() else name


def _value_of(series: Any) -> float | None:
    pair = series.get("value") if isinstance(series, Mapping) else None
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str | int | float):
        return None
    try:
        value = float(pair[1])
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
