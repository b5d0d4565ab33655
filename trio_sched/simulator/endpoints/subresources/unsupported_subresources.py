"""Subresources that need a running container or a token: refused cleanly, or answered with a pretended one."""

from __future__ import annotations

from typing import Final

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.objects.timestamps import format_time
from trio_sched.simulator.endpoints.messages import Request, Response
from trio_sched.simulator.endpoints.negotiation import read_object
from trio_sched.simulator.errors.status_errors import no_containers
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.registry.lifecycle import require
from trio_sched.simulator.storage.cluster_state import ClusterState

_TOKEN_SECONDS: Final = 3600


def serve_without_container(state: ClusterState, target: Target, request: Request) -> Response:
    """What only a container could answer.

    Raises:
        ApiError: 404 no such object, 400 always otherwise.
    """
    require(state, target.resource, target.namespace, target.name)
    raise no_containers()


def serve_token(state: ClusterState, target: Target, request: Request) -> Response:
    """A token of a service account; every token is accepted here.

    Raises:
        ApiError: 404 no such service account.
    """
    require(state, target.resource, target.namespace, target.name)
    wanted = read_object(request.body, request.headers.get("content-type", ""))
    spec: Json = wanted.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    seconds = seconds if isinstance(seconds, int) and 0 < seconds < 1 << 32 else _TOKEN_SECONDS
    now = state.now()
    expires = now.fromtimestamp(now.timestamp() + seconds, now.tzinfo)
    answer = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": target.name, "namespace": target.namespace, "creationTimestamp": state.timestamp()},
        "spec": {**spec, "expirationSeconds": seconds},
        "status": {"token": f"pretended.{state.new_uid()}", "expirationTimestamp": format_time(expires)},
    }
    return Response(201, msgspec.json.encode(answer))
