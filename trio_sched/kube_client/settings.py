"""The settings of a connection to an API server: its address, how to trust it, and the credentials.

Files are read when they are needed, because certificates and tokens are replaced while the process runs.
"""

from typing import Any

from attrs import field, frozen


@frozen(kw_only=True)
class TlsSettings:
    """How to trust the server, and the client certificate. Data has precedence over the file of the same thing.

    Without any certificate authority those of the system are used.
    """

    ca_file: str = ""
    ca_data: bytes = b""
    insecure_skip_verify: bool = False
    server_name: str = ""
    client_certificate_file: str = ""
    client_certificate_data: bytes = b""
    client_key_file: str = ""
    client_key_data: bytes = field(default=b"", repr=False)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that may be replaced while the process runs."""
        pairs = (
            (self.ca_file, self.ca_data),
            (self.client_certificate_file, self.client_certificate_data),
            (self.client_key_file, self.client_key_data),
        )
        return tuple(file for file, data in pairs if file and not data)


@frozen(kw_only=True)
class ExecSettings:
    """A program that returns credentials (``users[].user.exec``)."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster_info: dict[str, Any] | None = field(default=None, eq=False)
    """What the program gets to know about the cluster; None without ``provideClusterInfo``."""


@frozen(kw_only=True)
class Impersonation:
    """The user to impersonate (``users[].user.as`` and its neighbours)."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@frozen(kw_only=True)
class ConnectionSettings:
    """Everything that is needed to send requests to one API server.

    Attributes:
        server: scheme, host, port and path prefix, without a slash at the end.
        namespace: the context's namespace; empty if it has none.
        proxy_url: the proxy of the kubeconfig; if it is empty the environment decides.
        disable_compression: never ask for gzip.
        username, password: HTTP basic.
        token: a bearer token; used until *token_file* was read, and if that cannot be read.
        token_file: contains a token that is replaced while the process runs.
    """

    server: str
    namespace: str = ""
    tls: TlsSettings = TlsSettings()
    proxy_url: str = ""
    disable_compression: bool = False
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    exec_plugin: ExecSettings | None = None
    impersonation: Impersonation = Impersonation()

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.server.startswith("https://")
