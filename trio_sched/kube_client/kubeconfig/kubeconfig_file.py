"""Reads kubeconfig files: YAML or JSON in, plain values out, file names made absolute."""

import base64
import os
import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from attrs import evolve, field, frozen

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import MAX_BYTES, decode_text, read_bytes
from trio_sched.documents.yaml_reader import read_plain_documents
from trio_sched.go.base64 import InvalidBase64, decode_base64
from trio_sched.go.text import printable, quote, shortened
from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.files import UNREADABLE, describe_open_error, describe_os_error, read_file
from trio_sched.kube_client.kubeconfig.kubeconfig_wire import WireCluster, WireConfig, WireContext, WireUser

_T = TypeVar("_T")

_ANCHOR = re.compile(r"unknown anchor '.*'", re.DOTALL)
"""The name of an anchor can be a password that should have been quoted."""

EXEC_EXTENSION = "client.authentication.k8s.io/exec"


@frozen(kw_only=True)
class Cluster:
    """``clusters[].cluster``: a server and how to trust it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    disable_compression: bool = False
    exec_extension: Any = None

    @property
    def has_tls_settings(self) -> bool:
        """Whether there are settings that apply to https only."""
        return bool(self.certificate_authority or self.certificate_authority_data or self.insecure_skip_tls_verify)

    def with_server(self, server: str) -> "Cluster":
        """The same cluster with another *server*, to which the server name of the certificate does not apply."""
        return evolve(self, server=server, tls_server_name="")

    def exec_info(self, server: str) -> dict[str, Any]:
        """The cluster in ``KUBERNETES_EXEC_INFO``, with its order of fields; empty ones are left out."""
        authority = self.certificate_authority_data
        if not authority and self.certificate_authority:
            authority = read_file(self.certificate_authority)
        info: dict[str, Any] = {
            "server": server,
            "tls-server-name": self.tls_server_name,
            "insecure-skip-tls-verify": self.insecure_skip_tls_verify,
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "proxy-url": self.proxy_url,
            "disable-compression": self.disable_compression,
        }
        return {key: value for key, value in info.items() if value} | {"config": self.exec_extension}


@frozen(kw_only=True)
class ExecConfig:
    """``users[].user.exec``."""

    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


@frozen(kw_only=True)
class User:
    """``users[].user``: credentials."""

    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    impersonate: str = ""
    impersonate_uid: str = ""
    impersonate_groups: tuple[str, ...] = ()
    impersonate_extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    auth_provider: str | None = None
    exec_plugin: ExecConfig | None = None


@frozen(kw_only=True)
class Context:
    """``contexts[].context``: a cluster, a user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


@frozen(kw_only=True)
class Kubeconfig:
    """A kubeconfig file."""

    current_context: str = ""
    clusters: dict[str, Cluster] = field(factory=dict)
    users: dict[str, User] = field(factory=dict)
    contexts: dict[str, Context] = field(factory=dict)


def read_kubeconfig(path: str) -> Kubeconfig:
    """The kubeconfig at *path*; relative file names in it are relative to its directory.

    Raises:
        KubeconfigError: there is no such file, or it is not a kubeconfig.
    """
    try:
        text = read_bytes(path, max_bytes=MAX_BYTES)
    except FileNotFoundError as problem:
        raise KubeconfigError(f"stat {path}: no such file or directory") from problem
    except IsADirectoryError as problem:
        raise _unloadable(path, f"read {path}: {describe_os_error(problem)}") from problem
    except UNREADABLE as problem:
        raise _unloadable(path, describe_open_error(path, problem)) from problem
    return parse_kubeconfig(text, path=path)


def parse_kubeconfig(text: bytes, *, path: str) -> Kubeconfig:
    """The kubeconfig in *text*, which came from *path*.

    Raises:
        KubeconfigError: names *path* and what is wrong where.
    """
    try:
        document = next((document.value for document in read_plain_documents(decode_text(text))), None)
    except DocumentError as problem:
        raise _unloadable(path, _ANCHOR.sub("unknown anchor", str(problem))) from problem
    if document is None:
        return Kubeconfig()
    if not isinstance(document, dict):
        raise _unloadable(path, f"expected a kubeconfig, got {_kind_of(document)}")
    version, kind = document.get("apiVersion") or "v1", document.get("kind") or "Config"
    if (version, kind) != ("v1", "Config"):
        version, kind = shortened(str(version)), shortened(str(kind))
        raise _unloadable(
            path, f'no kind {quote(kind)} is registered for version {quote(version)}: expected kind "Config", v1'
        )
    try:
        wire = msgspec.convert(document, WireConfig)
    except msgspec.ValidationError as problem:
        raise _unloadable(path, _lower_first(str(problem).replace("`", "").replace("$.", ""))) from problem
    reader = _Reader(path=path)
    return Kubeconfig(
        current_context=wire.current_context or "",
        clusters=reader.by_name("clusters", [(c.name, reader.cluster(c.cluster)) for c in wire.clusters or ()]),
        users=reader.by_name("users", [(u.name, reader.user(u.user)) for u in wire.users or ()]),
        contexts=reader.by_name("contexts", [(c.name, _context(c.context)) for c in wire.contexts or ()]),
    )


@frozen(kw_only=True)
class _Reader:
    """Converts the wire classes; *path* is for errors and relative file names."""

    path: str

    def by_name(self, what: str, entries: list[tuple[str | None, _T]]) -> dict[str, _T]:
        found: dict[str, _T] = {}
        for given, value in entries:
            name = given or ""
            if name in found:
                raise _unloadable(self.path, f'{what}: duplicate name "{shortened(name)}" in list')
            found[name] = value
        return found

    def cluster(self, wire: WireCluster | None) -> Cluster:
        if wire is None:
            return Cluster()
        extensions = {extension.name: extension.extension for extension in wire.extensions or ()}
        return Cluster(
            server=wire.server or "",
            tls_server_name=wire.tls_server_name or "",
            insecure_skip_tls_verify=wire.insecure_skip_tls_verify or False,
            certificate_authority=self._absolute(wire.certificate_authority),
            certificate_authority_data=self._decoded(wire.certificate_authority_data),
            proxy_url=wire.proxy_url or "",
            disable_compression=wire.disable_compression or False,
            exec_extension=extensions.get(EXEC_EXTENSION),
        )

    def user(self, wire: WireUser | None) -> User:
        if wire is None:
            return User()
        extra = wire.as_user_extra or {}
        return User(
            client_certificate=self._absolute(wire.client_certificate),
            client_certificate_data=self._decoded(wire.client_certificate_data),
            client_key=self._absolute(wire.client_key),
            client_key_data=self._decoded(wire.client_key_data),
            token=wire.token or "",
            token_file=self._absolute(wire.token_file),
            username=wire.username or "",
            password=wire.password or "",
            impersonate=wire.as_ or "",
            impersonate_uid=wire.as_uid or "",
            impersonate_groups=tuple(wire.as_groups or ()),
            impersonate_extra=tuple((key, tuple(values)) for key, values in extra.items()),
            auth_provider=(wire.auth_provider.name or "") if wire.auth_provider is not None else None,
            exec_plugin=self._exec(wire),
        )

    def _exec(self, user: WireUser) -> ExecConfig | None:
        wire = user.exec
        if wire is None:
            return None
        command, version = wire.command or "", wire.api_version or ""
        mode = wire.interactive_mode or ""
        if not mode and version.endswith(("/v1beta1", "/v1alpha1")):
            mode = "IfAvailable"  # only v1 requires the field
        return ExecConfig(
            api_version=version,
            command=self._absolute(command) if "/" in command else command,  # a bare name is looked up in $PATH
            args=tuple(wire.args or ()),
            env=tuple((entry.name or "", entry.value or "") for entry in wire.env or ()),
            install_hint=wire.install_hint or "",
            provide_cluster_info=wire.provide_cluster_info or False,
            interactive_mode=mode,
        )

    def _absolute(self, file: str | None) -> str:
        if not file:
            return ""
        if "\0" in file:
            raise _unloadable(self.path, f"open {shortened(file)}: invalid argument")
        return os.path.normpath(Path(self.path).absolute().parent / file)

    def _decoded(self, data: str | None) -> bytes:
        try:
            return decode_base64(data or "")
        except InvalidBase64 as problem:
            raise _unloadable(self.path, str(problem)) from problem


def _context(wire: WireContext | None) -> Context:
    if wire is None:
        return Context()
    return Context(cluster=wire.cluster or "", user=wire.user or "", namespace=wire.namespace or "")


def _unloadable(path: str, problem: str) -> KubeconfigError:
    return KubeconfigError(printable(f"error loading config file {quote(path)}: {problem}"))


def _kind_of(document: object) -> str:
    return {list: "a list", str: "text", bool: "a truth value"}.get(type(document), "a number")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
