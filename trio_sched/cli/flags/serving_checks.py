"""Checks, before anything starts, what the flags about serving, authentication and authorization name.

A function per thing that can be wrong, called by `check_serving` in kube-scheduler's order and with its texts. Nothing
is checked that is not used: without a secure port that is everything.
"""

import errno
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trio_sched.cli.flags.flags import Flags
from trio_sched.cli.flags.serving_options import delegated_connection
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.serving.tls.tls_names import VERSIONS, cipher_suite_problem, curve_problem
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import quote
from trio_sched.kube_client.files import describe_os_error, read_file
from trio_sched.kube_client.http.client_certificate import load_client_certificate, pem_blocks

PAIR_NAME: Final = "kube-scheduler"
"""The files in ``--cert-dir`` are ``kube-scheduler.crt`` and ``kube-scheduler.key``."""
_NO_CERTIFICATES: Final = "data does not contain any valid RSA or ECDSA certificates"


def check_certificate_directory(flags: Flags) -> None:
    """Whether ``--cert-dir`` has a certificate with its key, or neither; comes before the configuration is read.

    Raises:
        ConfigError: one of them is missing.
    """
    pair = certificate_directory_pair(flags)
    if not flags["secure-port"] or pair is None:
        return
    missing = [path for path in pair if not _is_readable(path)]
    if len(missing) == 1:
        problem = f"error reading {missing[0]}, certificate and key must be supplied as a pair"
        raise ConfigError.of(f"error creating self-signed certificates: {problem}")


def certificate_directory_pair(flags: Flags) -> tuple[str, str] | None:
    """Where the certificate and the key in ``--cert-dir`` are; None if that flag is not used."""
    if not flags["cert-dir"] or flags["tls-cert-file"] or flags["tls-private-key-file"]:
        return None
    directory = os.path.normpath(flags["cert-dir"])
    return f"{directory}/{PAIR_NAME}.crt", f"{directory}/{PAIR_NAME}.key"


def check_serving(flags: Flags, *, starts: bool) -> None:
    """Check everything about serving, once the configuration has been read; the first problem ends it.

    Args:
        flags: the command line.
        starts: whether the port will be opened, so that it must be free.

    Raises:
        ConfigError: naming the flag's value or the file.
    """
    if not flags["secure-port"]:
        return
    if starts:
        check_port(flags)
    for check in _CHECKS:
        check(flags)


def check_port(flags: Flags) -> None:
    """Whether the port can be listened on now.

    Raises:
        ConfigError: it is taken, not permitted, or the address is not one of this host.
    """
    host, port = flags["bind-address"] or "::", flags["secure-port"]
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        _try_to_listen(flags, "::" if host == "0.0.0.0" else host, port)
    except OSError as error:
        listening = f"listen tcp {shown}: bind: {describe_os_error(error)}"
        raise ConfigError.of(f"failed to create listener: failed to listen on {shown}: {listening}") from error


def _try_to_listen(flags: Flags, host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        if host != "::" or error.errno != errno.EAFNOSUPPORT:
            raise
        return _try_to_listen(flags, "0.0.0.0", port)  # a host without IPv6
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if flags["permit-port-sharing"]:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        listener.bind((host, port))


def check_certificate(flags: Flags) -> None:
    """Whether the serving certificate and its key can be used together.

    Raises:
        ConfigError: one is missing, unreadable or malformed, or they do not belong together.
    """
    pair = flags["tls-cert-file"], flags["tls-private-key-file"]
    if any(pair):
        if not all(pair):
            raise ConfigError.of("missing filename for serving cert")
        _check_pair("serving-cert", *pair)
    elif (stored := certificate_directory_pair(flags)) and all(map(_is_readable, stored)):
        _check_pair("serving-cert", *stored)


def check_cipher_suites(flags: Flags) -> None:
    """Whether ``--tls-cipher-suites`` names suites that exist.

    Raises:
        ConfigError: naming the first that does not.
    """
    if problem := cipher_suite_problem(flags["tls-cipher-suites"]):
        raise ConfigError.of(problem)


def check_curves(flags: Flags) -> None:
    """Whether ``--tls-curve-preferences`` has numbers of mechanisms that exist, each once.

    Raises:
        ConfigError: naming the first that is wrong.
    """
    if problem := curve_problem(flags["tls-curve-preferences"]):
        raise ConfigError.of(problem)


def check_tls_version(flags: Flags) -> None:
    """Whether ``--tls-min-version`` is a version of TLS.

    Raises:
        ConfigError: it is not.
    """
    name = flags["tls-min-version"]
    if name not in VERSIONS:
        raise ConfigError.of(f"unknown tls version {quote(name)}")


def check_sni_certificates(flags: Flags) -> None:
    """Whether every pair of ``--tls-sni-cert-key`` can be used.

    Raises:
        ConfigError: as `check_certificate`.
    """
    for certificate, key, _names in flags["tls-sni-cert-key"]:
        try:
            if not (certificate and key):
                raise ConfigError.of("missing filename for serving cert")
            _check_pair("sni-serving-cert", certificate, key)
        except ConfigError as error:
            raise error.within("failed to load SNI cert and key: ") from error


def check_authentication(flags: Flags) -> None:
    """Whether the kubeconfig to review tokens with can be used.

    Raises:
        ConfigError: with the text of the kubeconfig's problem.
    """
    if path := flags["authentication-kubeconfig"]:
        delegated_connection(path, "authentication")


def check_client_authority(flags: Flags) -> None:
    """Whether ``--client-ca-file`` has certificates.

    Raises:
        ConfigError: it cannot be read, or has none.
    """
    if path := flags["client-ca-file"]:
        _check_authority("unable to load client CA provider: ", "client-ca-bundle", path)


def check_request_header_authority(flags: Flags) -> None:
    """Whether ``--requestheader-client-ca-file`` has certificates.

    Raises:
        ConfigError: it cannot be read, or has none.
    """
    if path := flags["requestheader-client-ca-file"]:
        _check_authority("unable to create request header authentication config: ", "request-header", path)


def check_authorization(flags: Flags) -> None:
    """Whether the kubeconfig to review access with can be used.

    Raises:
        ConfigError: with the text of the kubeconfig's problem.
    """
    if path := flags["authorization-kubeconfig"]:
        delegated_connection(path, "authorization")


def check_allowed_paths(flags: Flags) -> None:
    """Whether ``--authorization-always-allow-paths`` has paths and prefixes only.

    Raises:
        ConfigError: naming the first with an asterisk that is not its end.
    """
    for path in flags["authorization-always-allow-paths"]:
        relative = path.removeprefix("/")
        if "*" in relative[:-1]:
            raise ConfigError.of(f"only trailing * allowed in {quote(relative)}")


_CHECKS: Final[tuple[Callable[[Flags], None], ...]] = (
    check_certificate,
    check_cipher_suites,
    check_curves,
    check_tls_version,
    check_sni_certificates,
    check_authentication,
    check_client_authority,
    check_request_header_authority,
    check_authorization,
    check_allowed_paths,
)


def _is_readable(path: str) -> bool:
    try:
        with Path(path).open("rb"):
            return True
    except (OSError, ValueError):
        return False


def _check_pair(purpose: str, certificate_path: str, key_path: str) -> None:
    try:
        certificate, key = read_file(certificate_path), read_file(key_path)
        if not (certificate and key):
            name = f"{purpose}::{certificate_path}::{key_path}"
            raise ConfigError.of(f"missing content for serving cert {quote(name)}")
        load_client_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)
    except ConfigError:
        raise
    except TrioSchedError as error:
        raise ConfigError.of(str(error)) from error


def _check_authority(doing: str, purpose: str, path: str) -> None:
    try:
        content = read_file(path)
    except TrioSchedError as error:
        raise ConfigError.of(f"{doing}{error}") from error
    name = quote(f"{purpose}::{path}")
    if not content:
        raise ConfigError.of(f"{doing}missing content for CA bundle {name}")
    certificates = [block.text for block in pem_blocks(content) if block.type == "CERTIFICATE"]
    if not certificates:
        raise ConfigError.of(f"{doing}error loading CA bundle for {name}: {_NO_CERTIFICATES}")
    for certificate in certificates:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
                cadata=certificate.decode("ascii", "replace").replace("\ufffd", "?")
            )
        except ssl.SSLError as error:
            raise ConfigError.of(f"{doing}error loading CA bundle for {name}: x509: malformed certificate") from error
