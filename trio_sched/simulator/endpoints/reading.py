"""Getting, listing and watching."""

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.go.text import quote, shortened
from trio_sched.simulator.conversion.other_versions import shape_of
from trio_sched.simulator.endpoints.messages import Request
from trio_sched.simulator.endpoints.negotiation import Accepted
from trio_sched.simulator.endpoints.views import MetadataView, OtherVersionView, PlainView, TableView, View
from trio_sched.simulator.endpoints.watching import WatchStream
from trio_sched.simulator.errors.status_errors import ApiError, bad_request, expired, too_large_version
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import Collection, HistoryLost, StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.storage.selectors import Predicate, SelectorError, both, field_selector, label_selector
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, forbidden_field, unsupported

_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You must start a new list without the continue parameter."
)
_MIN_WATCH_SECONDS = 1800
_MOST_DIGITS = 18


class _Continuation(msgspec.Struct):
    """Where a list goes on: after *key*, as of *version*."""

    version: int
    key: str


def view_of(state: ClusterState, resource: ResourceType, accepted: Accepted, request: Request) -> View:
    """The form objects of *resource* take in the answer to *request*."""
    if accepted.form == "table":
        return TableView(resource, request.parameters.get("includeObject") or "Metadata", state.now())
    if accepted.form == "metadata":
        return MetadataView()
    if shape_of(resource) is not None:
        return OtherVersionView(resource)
    return PlainView(resource)


def predicate_of(resource: ResourceType, request: Request) -> Predicate | None:
    """What the selectors of *request* select; ``None`` for everything.

    Raises:
        ApiError: 400, a selector cannot be read.
    """
    parameters = request.parameters
    labels, fields = parameters.get("labelSelector", ""), parameters.get("fieldSelector", "")
    try:
        chosen = label_selector(labels) if labels else None
        return both(chosen, field_selector(fields, resource.collection)) if fields else chosen
    except SelectorError as error:
        if str(error).startswith("field label"):
            what = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            message = (
                f'Unable to find "{what}" that match label selector "{labels}", field selector "{fields}": {error}'
            )
            raise bad_request(message) from error
        raise bad_request(str(error)) from error


def list_objects(state: ClusterState, target: Target, request: Request, view: View) -> bytes:
    """The body that answers a list.

    Raises:
        ApiError: 400 for malformed parameters, 410 for expired versions, 422 for a contradiction, 504 for future ones.
    """
    resource, parameters = target.resource, request.parameters
    predicate = predicate_of(resource, request)
    limit = _number(parameters.get("limit", ""), "limit")
    asked = _number(parameters.get("resourceVersion", ""), "resourceVersion")
    match = parameters.get("resourceVersionMatch", "")
    collection = state.store.collection(resource.collection)
    problems = _match_problems(parameters, watch=False)
    if problems:
        raise _invalid_options(problems)
    if asked > state.store.version:
        raise too_large_version(asked, state.store.version)
    start = ""
    version = state.store.version
    if parameters.get("continue"):
        token = _read_token(parameters["continue"])
        start, version = token.key, token.version
    elif asked and (match == "Exact" or (limit and not match)):
        version = asked
    elif asked == 0 and parameters.get("resourceVersion"):
        limit = 0  # "any version" is answered by the watch cache, which does not page
    found = _as_of(state, collection, version, target.namespace, paging=bool(start))
    if start:
        found = found[bisect_right([stored.key for stored in found], start) :]
    metadata: Json = {"resourceVersion": str(version)}
    if limit and len(found) > limit:
        found, metadata = _page(found, limit, predicate, version, metadata)
    elif predicate is not None:
        found = [stored for stored in found if predicate(stored.fields)]
    return view.many(found, metadata)


def _page(
    found: list[StoredObject], limit: int, predicate: Predicate | None, version: int, metadata: Json
) -> tuple[list[StoredObject], Json]:
    """The first *limit* objects, and how to go on behind them."""
    if predicate is None:
        page, rest = found[:limit], len(found) - limit
    else:
        page, rest = [], 0
        for stored in found:
            if predicate(stored.fields):
                if len(page) == limit:
                    rest = 1
                    break
                page.append(stored)
    if rest:
        metadata["continue"] = _write_token(_Continuation(version, page[-1].key))
        if predicate is None:
            metadata["remainingItemCount"] = rest
    return page, metadata


def _as_of(
    state: ClusterState, collection: Collection, version: int, namespace: str, *, paging: bool
) -> list[StoredObject]:
    if version >= state.store.version:
        return list(collection.in_order(namespace))
    try:
        objects = collection.as_of(version)
    except HistoryLost as error:
        raise expired(_CONTINUE_EXPIRED if paging else str(error)) from error
    if objects is collection.objects:
        return list(collection.in_order(namespace))
    prefix = f"{namespace}/" if namespace else ""
    return [objects[key] for key in sorted(objects) if key.startswith(prefix)]


def watch_objects(
    state: ClusterState,
    target: Target,
    request: Request,
    view: View,
    on_close: Callable[[WatchStream], None],
) -> WatchStream:
    """The stream that answers a watch, which receives changes from now on.

    Raises:
        ApiError: as for lists; an expired version is an ERROR event in the stream instead.
    """
    resource, parameters = target.resource, request.parameters
    predicate = predicate_of(resource, request)
    if target.name:
        predicate = both(predicate, field_selector(f"metadata.name={target.name}", resource.collection))
    problems = _match_problems(parameters, watch=True)
    if problems:
        raise _invalid_options(problems)
    asked = _number(parameters.get("resourceVersion", ""), "resourceVersion")
    timeout = _number(parameters.get("timeoutSeconds", ""), "timeoutSeconds")
    everything = parameters.get("sendInitialEvents")
    if everything is not None and asked > state.store.version:
        raise too_large_version(asked, state.store.version)
    bookmarks = request.flag("allowWatchBookmarks")
    stream = WatchStream(
        state.store,
        resource,
        view,
        namespace=target.namespace,
        predicate=predicate,
        timeout_seconds=timeout or _MIN_WATCH_SECONDS * (1 + state.rng.random()),
        bookmarks=bookmarks,
        backlog_limit=state.watch_backlog_limit,
        on_close=on_close,
    )
    try:
        if everything is None:
            if asked:
                stream.start_after(asked)
            else:
                stream.start_with_everything(mark_end=False)
        elif request.flag("sendInitialEvents"):
            stream.start_with_everything(mark_end=bookmarks)
        else:
            stream.start_after(asked or state.store.version)
    except HistoryLost as error:
        stream.send_error(expired(str(error)).body())
    return stream


def _match_problems(parameters: dict[str, str], *, watch: bool) -> list[FieldProblem]:
    """The contradictions between the parameters about versions."""
    match = parameters.get("resourceVersionMatch", "")
    initial = parameters.get("sendInitialEvents")
    problems = []
    if watch and initial is None and match:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        problems.append(forbidden_field("resourceVersionMatch", detail))
    elif watch and initial is not None and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        problems.append(forbidden_field("resourceVersionMatch", detail))
    elif not watch and initial is not None:
        problems.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    elif match and match not in ("Exact", "NotOlderThan"):
        problems.append(unsupported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
    elif match and not watch and not parameters.get("resourceVersion"):
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        problems.append(forbidden_field("resourceVersionMatch", detail))
    elif match == "Exact" and parameters.get("resourceVersion") == "0":
        detail = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        problems.append(forbidden_field("resourceVersionMatch", detail))
    elif match and parameters.get("continue"):
        detail = "resourceVersionMatch is forbidden when continue is provided"
        problems.append(forbidden_field("resourceVersionMatch", detail))
    return problems


def _invalid_options(problems: list[FieldProblem]) -> ApiError:
    text = ", ".join(f"{problem.field}: {problem.message}" for problem in problems)
    details = {
        "group": "meta.k8s.io",
        "kind": "ListOptions",
        "causes": [problem.as_cause() for problem in problems],
    }
    return ApiError(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {text}', details)


def _number(text: str, name: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        why = "invalid syntax"
    elif len(text) > _MOST_DIGITS:
        why = "value out of range"
    else:
        return int(text)
    given = quote(shortened(text))
    raise bad_request(f"{name}: Invalid value: {given}: strconv.ParseUint: parsing {given}: {why}")


def _write_token(continuation: _Continuation) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(continuation)).decode().rstrip("=")


def _read_token(text: str) -> _Continuation:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(raw, type=_Continuation)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
