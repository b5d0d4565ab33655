"""The API server: from a request to its response."""

import gzip
import random
from collections.abc import Callable, Mapping, Sequence

import trio
from attrs import define, field

from trio_sched.documents.json_values import Json, encode
from trio_sched.errors import TrioSchedError
from trio_sched.simulator.admission import pod_security
from trio_sched.simulator.admission.workload_references import drop_stored_references
from trio_sched.simulator.endpoints import discovery, openapi, openapi_v2
from trio_sched.simulator.endpoints.faults import Faults, ReplyDropped
from trio_sched.simulator.endpoints.messages import JSON_HEADERS, Request, Response, warning_header
from trio_sched.simulator.endpoints.negotiation import AGGREGATED_DISCOVERY, Accepted, accepted_form, read_object
from trio_sched.simulator.endpoints.reading import list_objects, view_of, watch_objects
from trio_sched.simulator.endpoints.reviews import AccessRules, review_behind
from trio_sched.simulator.endpoints.routing import resolve
from trio_sched.simulator.endpoints.subresources.pod_subresources import create_binding
from trio_sched.simulator.endpoints.subresources.table import SUBRESOURCES
from trio_sched.simulator.endpoints.usage_metrics import serve_metrics
from trio_sched.simulator.endpoints.views import as_yaml
from trio_sched.simulator.endpoints.watching import WatchStream
from trio_sched.simulator.endpoints.writing import (
    create_object,
    delete_collection,
    delete_object,
    patch_object,
    update_object,
)
from trio_sched.simulator.errors.status_errors import ApiError, PageNotFound
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.registry.bootstrap_objects import create_bootstrap_objects
from trio_sched.simulator.registry.lifecycle import require
from trio_sched.simulator.storage.clock import Clock, wall_clock
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_VERSION, minor_version
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject

_PLAIN_TEXT: Mapping[str, str] = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
_NO_HEADERS: Mapping[str, str] = {}
_GZIP_THRESHOLD_BYTES = 128 * 1024
_RETURNS_DELETED = frozenset(
    {
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    }
)


class ServerStopped(TrioSchedError):
    """The server has been stopped."""


@define(eq=False)
class ApiServer:
    """An API server in memory.

    Args:
        now: the cluster's time; the machine's by default.
        seed: where uids, generated names and random timeouts come from; equal seeds give equal ones.
        history_limit: how many changes of each resource watches can resume from.
        watch_backlog_limit: how many events may wait for the reader of a watch before it is cut.
        users: bearer token → (user name, groups) for token reviews; ``None`` accepts every token.
        allows: decides access reviews, given their ``spec``; everything is allowed by default.
        kubernetes_version: of the API that is served: ``1.33``.

    Raises:
        UnknownKubernetesVersion: it is none of those that there are.
    """

    now: Clock = wall_clock
    seed: int = 0
    history_limit: int = 20_000
    watch_backlog_limit: int = 200_000
    users: Mapping[str, tuple[str, Sequence[str]]] | None = None
    allows: Callable[[Json], bool] = field(default=lambda _spec: True, kw_only=True)
    kubernetes_version: str = field(default=DEFAULT_VERSION, kw_only=True)
    faults: Faults = field(factory=Faults, init=False)
    state: ClusterState = field(init=False)
    _access: AccessRules = field(init=False)
    _streams: set[WatchStream] = field(factory=set, init=False)
    _running: bool = field(default=True, init=False)
    _running_changed: trio.Event = field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.state = ClusterState(
            ObjectStore(self.history_limit), self.now, random.Random(self.seed), self.watch_backlog_limit
        )
        self.state.types.minor = minor_version(self.kubernetes_version)
        self._access = AccessRules(users=self.users, allows=self.allows)
        create_bootstrap_objects(self.state)

    @property
    def store(self) -> ObjectStore:
        """The objects, for controllers and tests that act inside the cluster."""
        return self.state.store

    @property
    def running(self) -> bool:
        """Whether requests are answered."""
        return self._running

    @property
    def open_watches(self) -> int:
        """How many watches are open."""
        return len(self._streams)

    def stop(self) -> None:
        """Stop: open watches are cut, and new connections are refused."""
        self._set_running(running=False)
        self._cut_streams()

    def resume(self) -> None:
        """Start again with everything that was stored."""
        self._set_running(running=True)

    def restart(self, *, lose_history: bool = False) -> None:
        """Cut all watches, as a restarted server does.

        Args:
            lose_history: drop the history as well, so that watches which resume get ``410 Expired``.
        """
        self._cut_streams()
        if lose_history:
            self.compact()

    def change_version(self, kubernetes_version: str) -> None:
        """Serve the API of another version from now on, as after an upgrade or a downgrade; cuts all watches.

        What is stored stays, also where it is not served any more.

        Raises:
            UnknownKubernetesVersion: it is none of those that there are.
        """
        self.state.types.minor = minor_version(kubernetes_version)
        self.kubernetes_version = kubernetes_version
        drop_stored_references(self.store, self.state.types.minor)
        self._cut_streams()

    def compact(self) -> None:
        """Drop all history; watches that are open go on."""
        self.store.compact()

    async def wait_until(self, *, running: bool) -> None:
        """Wait until the server is, or is not, running."""
        while self._running is not running:
            await self._running_changed.wait()

    def _set_running(self, *, running: bool) -> None:
        if self._running is not running:
            self._running = running
            self._running_changed.set()
            self._running_changed = trio.Event()

    def _cut_streams(self) -> None:
        for stream in list(self._streams):
            stream.cut()

    async def handle(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = _NO_HEADERS,
        body: bytes = b"",
    ) -> Response:
        """Answer one request.

        Args:
            method: ``GET``, ``POST`` and so on.
            path: without the query, percent-escapes resolved.
            query: what stands behind the question mark, as it stands there.
            headers: names in lower case.
            body: all of it.

        Raises:
            ServerStopped: the server is stopped.
            ReplyDropped: the request was carried out, but a fault drops the reply.
        """
        if not self._running:
            raise ServerStopped("the API server is stopped")
        request = Request(method, path, query, headers, body)
        try:
            if self.faults:
                return await self._handle_with_faults(request)
            return self._answer(request)
        except ApiError as error:
            return _refusal(error)

    async def _handle_with_faults(self, request: Request) -> Response:
        review = review_behind(request.path)
        if review is not None and not review.plural.startswith("self"):  # what users ask about themselves has no faults
            verb, plural = "create", review.plural
        elif review is None and _is_resource_request(request):
            target = resolve(self.state.types, request.method, request.path)
            verb = "watch" if target.verb == "list" and request.flag("watch") else target.verb
            plural = target.resource.plural
        else:
            return self._answer(request)
        seconds = self.faults.latency_seconds(verb, plural)
        if seconds:
            await trio.sleep(seconds)
            if not self._running:
                raise ServerStopped("the API server was stopped while the request waited")
        drop = self.faults.inject(verb, plural)
        response = self._answer(request)
        if drop:
            if isinstance(response.body, WatchStream):
                response.body.close()
            raise ReplyDropped(f"the reply to {request.method} {request.path} was dropped")
        return response

    def _answer(self, request: Request) -> Response:
        if not _is_resource_request(request):
            return self._serve_non_resource(request)
        if request.method == "POST":
            review = review_behind(request.path)
            if review is not None:
                body = read_object(request.body, request.headers.get("content-type", ""))
                return Response(201, encode(self._access.answer(review, body)))
        target = resolve(self.state.types, request.method, request.path)
        if target.resource.computed:
            return serve_metrics(self.state, target, request)
        accepted = accepted_form(request.headers.get("accept", ""))
        serve = SUBRESOURCES[target.subresource].serve if target.subresource else None
        response = serve(self.state, target, request) if serve else self._serve(target, request, accepted)
        if request.warnings:
            response.headers = {**response.headers, "warning": warning_header(request.warnings)}
        if accepted.yaml and isinstance(response.body, bytes):
            headers = {**response.headers, "content-type": accepted.content_type}
            return Response(response.status, as_yaml(response.body), headers)
        return response

    def _serve(self, target: Target, request: Request, accepted: Accepted) -> Response:
        state, resource, before = self.state, target.resource, None
        match target.verb:
            case "get" if not request.flag("watch"):
                stored = self._require(target)
                return Response(200, view_of(state, resource, accepted, request).one(stored))
            case "list" if not request.flag("watch"):
                view = view_of(state, resource, accepted, request)
                return _compressed(list_objects(state, target, request, view), request)
            case "get" | "list":
                view = view_of(state, resource, accepted, request)
                stream = watch_objects(state, target, request, view, self._streams.discard)
                self._streams.add(stream)
                return Response(200, stream)
            case "create":
                if resource.plural == "bindings":
                    return create_binding(state, target, request)
                code, stored = 201, create_object(state, target, request)
            case "update":
                before = state.get(resource, target.namespace, target.name)
                code, stored = update_object(state, target, request)
            case "patch":
                before = state.get(resource, target.namespace, target.name)
                code, stored = patch_object(state, target, request)
            case "delete":
                return self._delete(target, request, accepted)
            case _:
                deleted = delete_collection(state, target, request)
                metadata = {"resourceVersion": str(self.store.version)}
                return Response(200, view_of(state, resource, accepted, request).many(deleted, metadata))
        if not target.subresource:
            request.warnings += pod_security.warnings(state, resource, before, stored)
        return Response(code, view_of(state, resource, accepted, request).one(stored))

    def _require(self, target: Target) -> StoredObject:
        return require(self.state, target.resource, target.namespace, target.name)

    def _delete(self, target: Target, request: Request, accepted: Accepted) -> Response:
        stored, gone = delete_object(self.state, target, request)
        resource = target.resource
        if not gone or resource.collection in _RETURNS_DELETED:
            return Response(200, view_of(self.state, resource, accepted, request).one(stored))
        details: Json = {"name": target.name}
        if resource.group:
            details["group"] = resource.group
        details |= {"kind": resource.plural, "uid": stored.fields["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Response(200, encode(status))

    def _serve_non_resource(self, request: Request) -> Response:
        path, types = request.path.rstrip("/") or "/", self.state.types
        if (healthy := discovery.health(path, verbose="verbose" in request.parameters)) is not None:
            return Response(200, healthy, {"content-type": "text/plain; charset=utf-8"})
        if path == "/version":
            return Response(200, encode(discovery.server_version(types.minor)))
        if path == "/openapi/v2":
            return Response(200, openapi_v2.openapi_v2_document(types), {"content-type": openapi_v2.MEDIA_TYPE})
        found: Json | None = None
        parts = path.strip("/").split("/")
        match parts:
            case ["api" | "apis" as root]:
                if accepted_form(request.headers.get("accept", "")).aggregated:
                    body = encode(discovery.aggregated(types, core=root == "api"))
                    return Response(200, body, {"content-type": AGGREGATED_DISCOVERY})
                found = discovery.api_versions() if root == "api" else discovery.api_groups(types)
            case ["api", version]:
                found = discovery.resource_list(types, "", version)
            case ["apis", group]:
                found = discovery.api_group(types, group)
            case ["apis", group, version]:
                found = discovery.resource_list(types, group, version)
            case ["openapi", "v3"]:
                found = openapi.openapi_index(types)
            case ["openapi", "v3", "api", version]:
                found = openapi.openapi_document(types, "", version)
            case ["openapi", "v3", "apis", group, version]:
                found = openapi.openapi_document(types, group, version)
            case _:
                pass
        if found is None:
            raise PageNotFound()
        return Response(200, encode(found))


def _is_resource_request(request: Request) -> bool:
    """Whether this is a resource request, and not one for health, version, discovery or OpenAPI."""
    path = request.path
    if path.startswith("/api/"):
        return path.count("/") > 2 and not path.endswith("/v1/")
    return path.startswith("/apis/") and path.rstrip("/").count("/") > 3


def _refusal(error: ApiError) -> Response:
    if isinstance(error, PageNotFound):
        return Response(error.code, b"404 page not found\n", _PLAIN_TEXT)
    retry = (error.details or {}).get("retryAfterSeconds")
    if retry is None:
        return Response(error.code, error.body())
    return Response(error.code, error.body(), {**JSON_HEADERS, "retry-after": str(retry)})


def _compressed(body: bytes, request: Request) -> Response:
    """A list's *body*, compressed if it is large and the client accepts gzip."""
    if len(body) < _GZIP_THRESHOLD_BYTES or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(200, body)
    return Response(200, gzip.compress(body, compresslevel=1, mtime=0), {**JSON_HEADERS, "content-encoding": "gzip"})
