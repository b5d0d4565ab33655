"""How the HTTPS endpoints are served, and who may use them: the flags about serving as values."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from trio_sched.kube_client.settings import ConnectionSettings


@frozen(kw_only=True)
class CertificateFiles:
    """A certificate with its issuers and its private key, as PEM files, and the domains that it is for."""

    certificate: str
    key: str
    names: tuple[str, ...] = ()
    """Patterns like ``*.example.com``; none: the names in the certificate."""


@frozen(kw_only=True)
class TlsServerSettings:
    """Certificates and TLS parameters of the listener."""

    files: CertificateFiles | None = None
    """None: a self-signed certificate."""
    directory: str = ""
    """Where the self-signed certificate is kept; empty: in memory."""
    sni: tuple[CertificateFiles, ...] = ()
    min_version: str = ""
    """``VersionTLS10`` to ``VersionTLS13``; empty: 1.2."""
    cipher_suites: tuple[str, ...] = ()
    """IANA names; none: the default ones."""
    curves: tuple[int, ...] = ()
    """Key exchange mechanisms by their IANA numbers; none: the default ones."""


@frozen(kw_only=True)
class RequestHeaderSettings:
    """How a front proxy says who its user is."""

    allowed_names: tuple[str, ...] = ()
    """Common names that its certificate may have; none: any."""
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@frozen(kw_only=True)
class AuthenticationSettings:
    """The authorities whose word about the user of a request counts."""

    connection: ConnectionSettings | None = None
    """The API server that reviews tokens and has the ConfigMap; None: neither is used."""
    skip_lookup: bool = False
    tolerate_lookup_failure: bool = True
    token_ttl_seconds: float = 10.0
    """How long the review of a token counts; not above zero: not at all."""
    client_ca_file: str = ""
    request_header_ca_file: str = ""
    request_header: RequestHeaderSettings = RequestHeaderSettings()
    """Used with *request_header_ca_file*; without it the ConfigMap's settings are."""


@frozen(kw_only=True)
class AuthorizationSettings:
    """Who may do what."""

    connection: ConnectionSettings | None = None
    """The API server that reviews access; None: only what is always allowed is."""
    always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    """Exact paths, or prefixes that end in ``*``."""
    allowed_ttl_seconds: float = 10.0
    denied_ttl_seconds: float = 10.0


@frozen(kw_only=True)
class ServingSettings:
    """Everything about the HTTPS endpoints."""

    bind_address: str = "0.0.0.0"
    port: int = 10259
    share_port: bool = False
    http2: bool = True
    max_streams: int = 0
    """HTTP/2 streams per connection; 0: the default number."""
    tls: TlsServerSettings = TlsServerSettings()
    authentication: AuthenticationSettings = AuthenticationSettings()
    authorization: AuthorizationSettings = AuthorizationSettings()
    ui: bool = True
    """Whether there is the live page, ``/ui``."""
    flags: Mapping[str, str] = field(factory=dict)
    """Every flag and its value, for ``/flagz``."""

    @property
    def is_needed_at_once(self) -> bool:
        """Whether something is to be seen before anybody asks: new files, or a failure that ends the process."""
        makes_files = bool(self.tls.directory) and self.tls.files is None
        authentication = self.authentication
        may_fail = not (authentication.skip_lookup or authentication.tolerate_lookup_failure)
        return makes_files or (may_fail and authentication.connection is not None)
