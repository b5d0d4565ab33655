"""The structure of a kubeconfig file, field by field; each may be missing or null."""

from typing import Any

from msgspec import Struct, field


class Extension(Struct, frozen=True):
    """One entry of ``extensions``."""

    name: str | None = None
    extension: Any = None


class WireCluster(Struct, frozen=True, rename="kebab"):
    """``clusters[].cluster``."""

    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[Extension] | None = None


class NamedCluster(Struct, frozen=True):
    """One entry of ``clusters``."""

    name: str | None = None
    cluster: WireCluster | None = None


class EnvVar(Struct, frozen=True):
    """One entry of ``exec.env``."""

    name: str | None = None
    value: str | None = None


class WireExec(Struct, frozen=True, rename="camel"):
    """``users[].user.exec``."""

    api_version: str | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class AuthProvider(Struct, frozen=True):
    """``users[].user.auth-provider``, which Kubernetes does not support any more."""

    name: str | None = None


class WireUser(Struct, frozen=True, rename="kebab"):
    """``users[].user``."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = field(name="tokenFile", default=None)
    as_: str | None = field(name="as", default=None)
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str | None = None
    password: str | None = None
    auth_provider: AuthProvider | None = None
    exec: WireExec | None = None


class NamedUser(Struct, frozen=True):
    """One entry of ``users``."""

    name: str | None = None
    user: WireUser | None = None


class WireContext(Struct, frozen=True):
    """``contexts[].context``."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedContext(Struct, frozen=True):
    """One entry of ``contexts``."""

    name: str | None = None
    context: WireContext | None = None


class WireConfig(Struct, frozen=True, rename="kebab"):
    """The whole document."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
