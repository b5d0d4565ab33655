"""Where an API server is, how to trust it and who we are: what a kubeconfig boils down to.

Files are named here and read when they are needed, because certificates and tokens are replaced while we run.
"""

from typing import Any

from attrs import field, frozen


@frozen(kw_only=True)
class TlsSettings:
    """How to trust the server, and the certificate we show it. Data wins over the file of the same thing.

    Without any certificate authority the system's are used.
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
        """The files that may be replaced while we run."""
        pairs = (
            (self.ca_file, self.ca_data),
            (self.client_certificate_file, self.client_certificate_data),
            (self.client_key_file, self.client_key_data),
        )
        return tuple(file for file, data in pairs if file and not data)


@frozen(kw_only=True)
class ExecSettings:
    """A program that gives us credentials (``users[].user.exec``)."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster_info: dict[str, Any] | None = field(default=None, eq=False)
    """What the program is told of the cluster; None when it did not ask."""


@frozen(kw_only=True)
class Impersonation:
    """As whom the server should treat us."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@frozen(kw_only=True)
class ConnectionSettings:
    """Everything needed to speak to one API server.

    Attributes:
        server: scheme, host, port and path prefix, without a slash at the end.
        namespace: the context's namespace; empty when it names none.
        proxy_url: the proxy of the kubeconfig; empty leaves it to the environment.
        disable_compression: never ask for gzip.
        username, password: HTTP basic.
        token: a bearer token; what counts until *token_file* was read, and when it cannot be.
        token_file: a token that is replaced while we run.
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
        """Whether the server is spoken to in private."""
        return self.server.startswith("https://")
