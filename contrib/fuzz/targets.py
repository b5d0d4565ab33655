"""The decoders, each as a function of bytes, with examples of what it decodes."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
import trio
from attrs import frozen

from contrib.fuzz import examples
from trio_sched.cel.device_selector import compile_device_selector
from trio_sched.cel.errors import CelError, CompileError
from trio_sched.cli.flags.flags import ArgumentError, parse_flags
from trio_sched.cli.flags.go_flags import FlagError
from trio_sched.config.errors import ConfigError
from trio_sched.config.legacy import read_legacy_configuration
from trio_sched.config.load import check_configuration, load_configuration
from trio_sched.daemon.extenders import extender_wire
from trio_sched.daemon.metrics.formats.accepted_format import accepted_format
from trio_sched.daemon.plugins.plugin_trace import BadTraceSelector, TraceSelector
from trio_sched.daemon.serving.authentication.tokens import token_in as token_of_request
from trio_sched.daemon.serving.errors import NotAuthenticated
from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving.negotiation import negotiate
from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.documents.deep_json import elements, end_of_first_value, place_of_member, pruned
from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import decode_text
from trio_sched.documents.json_reader import read_json
from trio_sched.documents.plain import read_plain
from trio_sched.documents.verbosity_text import parse_verbosity, parse_vmodule
from trio_sched.documents.yaml_reader import read_plain_documents, read_yaml
from trio_sched.go.durations import InvalidDuration, format_duration, parse_duration
from trio_sched.kube_client.credentials.exec_plugin import parse_credential
from trio_sched.kube_client.credentials.token_file import token_in
from trio_sched.kube_client.decoding import streamed_list
from trio_sched.kube_client.decoding.decoding import Codec, Page
from trio_sched.kube_client.decoding.streamed_list import StreamedList
from trio_sched.kube_client.errors import (
    CredentialsError,
    KubeconfigError,
    UndecodableObject,
    error_from_redirect,
    error_from_reply,
    is_html,
)
from trio_sched.kube_client.http.client_certificate import load_client_certificate, pem_blocks
from trio_sched.kube_client.http.http1 import Http1Connection, ProtocolViolation, Reply
from trio_sched.kube_client.http.proxy import Proxy, ProxyRefused, tunnel
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND
from trio_sched.kube_client.kubeconfig.kubeconfig import settings_of
from trio_sched.kube_client.kubeconfig.kubeconfig_file import parse_kubeconfig
from trio_sched.kube_client.server_url import host_and_port, normalise_server
from trio_sched.objects.amounts.quantity import INT64_MAX, NANO, QuantityError, parse_nano
from trio_sched.objects.amounts.quantity_text import format_nano, style_of
from trio_sched.objects.resource.resource_slice import Device
from trio_sched.objects.selector import LabelSelector, NodeSelector
from trio_sched.objects.timestamps import parse_time
from trio_sched.snapshot.labels.label_selection import SelectorError, compile_selector
from trio_sched.snapshot.node_selection import terms_problem

MAX_BODY_BYTES: Final = 1 << 20
"""The largest response here: what is larger takes longer, and finds nothing more."""
PIECE_BYTES: Final = 40
"""From so many bytes on a list is decoded in pieces, here."""

Decode = Callable[[bytes], None]


@frozen
class Target:
    """One decoder."""

    name: str
    decode: Decode
    """Raises nothing but what is in *refuses*."""
    examples: tuple[bytes, ...]
    refuses: tuple[type[Exception], ...] = ()
    """What the decoder documents that it raises."""

    def try_one(self, data: bytes) -> None:
        """Decode *data*; whatever this raises is a fault."""
        try:
            self.decode(data)
        except self.refuses as problem:
            str(problem).encode()  # the text is logged


TARGETS: Final[dict[str, Target]] = {}


def target(found: Iterable[bytes], *refuses: type[Exception]) -> Callable[[Decode], Decode]:
    """Register a function as the target of its name."""

    def register(decode: Decode) -> Decode:
        TARGETS[decode.__name__] = Target(decode.__name__, decode, tuple(found), refuses)
        return decode

    return register


# --- responses --------------------------------------------------------------------------------------------------------


class Received:
    """A channel from which *data* is received, in pieces of *size* bytes."""

    def __init__(self, data: bytes, size: int) -> None:
        self.sent_anything = False
        self._pieces = [data[start : start + size] for start in range(0, len(data), size)]

    async def send(self, _data: bytes) -> None:
        self.sent_anything = True

    async def receive(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def receive_nowait(self) -> bytes | None:
        return None

    def is_stale(self) -> bool:
        return False

    def close(self) -> None:
        pass


@target(examples.RESPONSES)
def http_response(data: bytes) -> None:
    """A response means the same, whatever pieces it comes in."""
    whole, pieces = (trio.run(_reply, data[1:], size) for size in (len(data) + 1, 1 + data[0] if data else 1))
    assert whole == pieces, (whole, pieces)


async def _reply(data: bytes, size: int) -> Reply | None:
    try:
        return await Http1Connection(Received(data, size)).exchange(b"GET / HTTP/1.1\r\n\r\n", MAX_BODY_BYTES)
    except ProtocolViolation:
        return None


@target(examples.STATUSES)
def status(data: bytes) -> None:
    """An error reply."""
    str(error_from_reply(400 + (data[0] if data else 0), data[1:], request="GET /x")).encode()
    str(error_from_redirect(302, data.decode("latin-1"), request="GET /x")).encode()
    is_html(data[:10], data)


@target(examples.PROXY_ANSWERS, ProxyRefused)
def proxy_answer(data: bytes) -> None:
    """What a proxy says before the server can be spoken to."""
    for url in ("http://user:secret@proxy:3128", "socks5://user:secret@proxy:1080"):
        trio.run(tunnel, Received(data[1:], 1 + data[0] if data else 1), Proxy.parse(url), "server", 6443)


# --- objects ----------------------------------------------------------------------------------------------------------

CODECS: Final = tuple(Codec(kind) for kind in (POD_KIND, NODE_KIND, *KINDS.values()))


def _codec(data: bytes) -> Codec[Any]:
    return CODECS[data[0] % len(CODECS)] if data else CODECS[0]


@target(examples.WATCH_LINES)
def watch_lines(data: bytes) -> None:
    """Lines of a watch: what is no event is the last one."""
    for event in _codec(data).events(data[1:]):
        assert isinstance(event.type, str)


@target(examples.OBJECTS, UndecodableObject)
def one_object(data: bytes) -> None:
    """An object, alone and in a list."""
    _codec(data).object(data[1:])


@target(examples.LISTS)
def list_in_pieces(data: bytes) -> None:
    """A list that can be decoded as a whole comes to the same in pieces, and no piece raises anything else."""
    codec, body, size = _codec(data), data[2:], 1 + (data[1] if len(data) > 1 else 0)
    streamed_list.PIECE_BYTES = PIECE_BYTES
    pages: list[Page[Any]] = []
    streamed = StreamedList(codec, pages.append, [])
    try:
        for start in range(0, len(body), size):
            streamed.feed(body[start : start + size])
        streamed.end()
        problem = None
    except UndecodableObject as error:
        problem = error
    try:
        whole = codec.page(body)
    except UndecodableObject:
        return
    if body.count(b'"items"') > 1:  # the last of several counts, which no API server sends
        return
    assert problem is None, problem
    assert [one for page in pages for one in page.objects] == whole.objects
    assert [one[:3] for page in pages for one in page.undecoded] == [one[:3] for one in whole.undecoded]
    assert pages[-1].metadata == whole.metadata


@target(examples.LISTS, UndecodableObject)
def compressed_list(data: bytes) -> None:
    """A list that says it is compressed."""
    for body in (data[2:], gzip.compress(data[2:], 1)):
        streamed = StreamedList(CODECS[0], lambda _page: None, [(b"content-encoding", b"gzip")])
        streamed.feed(body)
        streamed.end()


@target(examples.VALUES)
def deep_json(data: bytes) -> None:
    """What looks at JSON without decoding it never raises, and agrees with a decoder about what is JSON."""
    pruned(data, 2)
    place_of_member(data, "items")
    found = elements(data)
    end = end_of_first_value(data)
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    assert data[end:].strip() == b""
    assert msgspec.json.decode(pruned(data, 1_000)) == value
    if isinstance(value, list) and data[:1] == b"[":
        assert [msgspec.json.decode(one) for one in found] == value


@target(examples.SELECTORS)
def selectors(data: bytes) -> None:
    """Selectors of any shape are evaluated, or refused with a text."""
    for shape in (LabelSelector, NodeSelector):
        try:
            selector = msgspec.json.decode(data, type=shape)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(selector, NodeSelector):
            (terms_problem(selector.node_selector_terms or ()) or "").encode()
            continue
        try:
            compile_selector(selector).matches({"app": "web"})
        except SelectorError as problem:
            str(problem).encode()


@target(examples.QUANTITIES)
def quantities(data: bytes) -> None:
    """Amounts and times as texts: what is read is written so that it reads the same."""
    text = data.decode("utf-8", "replace")
    try:
        nano = parse_nano(text)
    except QuantityError:
        pass
    else:
        if abs(nano) < INT64_MAX * NANO:  # what is beyond is clamped
            assert parse_nano(format_nano(nano, style_of(text))) == nano
    parse_time(text)
    with suppress(InvalidDuration):
        assert parse_duration(format_duration(parse_duration(text))) == parse_duration(text)


DEVICE: Final = msgspec.json.decode(examples.DEVICE, type=Device)


@target(examples.EXPRESSIONS, CelError)
def device_selector(data: bytes) -> None:
    """An expression is compiled, or says why not, and is evaluated in a time that its cost bounds."""
    try:
        compiled = compile_device_selector(data.decode("utf-8", "replace"), list_attributes=True)
    except CompileError as problem:
        if str(problem).startswith("internal error"):
            raise AssertionError(problem) from problem
        raise
    outcome, _cost = compiled.judge("gpu.example.com", DEVICE)
    str(outcome).encode()


# --- files ------------------------------------------------------------------------------------------------------------


@target(examples.KUBECONFIGS, KubeconfigError, CredentialsError)
def kubeconfig(data: bytes) -> None:
    """A kubeconfig, and what is made of it."""
    settings_of(parse_kubeconfig(data, path="kubeconfig"))


@target((*examples.DOCUMENTS, *examples.KUBECONFIGS, *examples.CONFIGURATIONS))
def documents(data: bytes) -> None:
    """YAML and JSON."""
    try:
        text = decode_text(data)
    except DocumentError:
        return
    for read in (read_yaml, read_json, read_plain_documents, read_plain):
        try:
            found = read(text)
            list(found if isinstance(found, Iterator) else ())
        except DocumentError as problem:
            str(problem).encode()


@target(examples.CONFIGURATIONS, ConfigError, DocumentError)
def configuration(data: bytes) -> None:
    """A configuration: if it is refused, the check says why."""
    text = decode_text(data)
    config, findings = check_configuration(text)
    assert (config is None) == bool(findings)
    try:
        load_configuration(text)
    except ConfigError as problem:
        if not findings:
            raise AssertionError(problem) from problem
        raise


@target(examples.OLD_CONFIGURATIONS, ConfigError, DocumentError)
def old_configuration(data: bytes) -> None:
    """A configuration of a former version is converted, and then read like others."""
    found = read_legacy_configuration(decode_text(data))
    if found is not None and found.policy_source is None:
        load_configuration(found.convert().text())


@target(examples.CREDENTIALS, CredentialsError)
def exec_credential(data: bytes) -> None:
    """What an exec plugin prints."""
    parse_credential(data, api_version="client.authentication.k8s.io/v1")


@target(examples.PEM, KubeconfigError, CredentialsError)
def token_and_certificate(data: bytes) -> None:
    """Files with a token, a certificate, a key."""
    pem_blocks(data)
    load_client_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), data, data)
    token_in(data, "token")


@target(examples.URLS, KubeconfigError)
def server_url(data: bytes) -> None:
    """The address of a server or a proxy."""
    text = data.decode("utf-8", "replace")
    with suppress(ValueError):
        Proxy.parse_strictly(text)
    host_and_port(normalise_server(text, has_tls_settings=False))


@target(examples.FLAGS, FlagError, ArgumentError)
def flags(data: bytes) -> None:
    """A command line."""
    parse_flags(data.decode("utf-8", "replace").split("\0"))


# --- extenders and clients --------------------------------------------------------------------------------------------


@target(examples.EXTENDER_ANSWERS)
def extender_answer(data: bytes) -> None:
    """What an extender answers."""
    for read in (
        extender_wire.read_filter_result,
        extender_wire.read_priorities,
        extender_wire.read_bind_error,
        extender_wire.read_victims,
    ):
        try:
            read(data)
        except extender_wire.InvalidResponse as problem:
            str(problem).encode()


@target(examples.REQUESTS)
def https_request(data: bytes) -> None:
    """The parts of a request that mean something: the first line is the query, the others are headers."""
    query, *lines = data.decode("latin-1").split("\n")
    headers = [(name.lower(), value) for name, _, value in (line.partition(":") for line in lines)]
    request = Request(method="GET", path="/", target="/", query=query, headers=headers, is_websocket=True)
    for name in ("seconds", "pretty", "exclude", "debug"):
        request.parameter(name)
    negotiate(request, ("application/json", "text/plain"))
    accepted_format(request.header("accept"))
    try:
        token_of_request(request)
    except NotAuthenticated as problem:
        str(problem).encode()
    for parse in (parse_verbosity, parse_vmodule, TraceSelector.read):
        try:
            parse(query)
        except (ValueError, BadTraceSelector) as problem:
            str(problem).encode()
