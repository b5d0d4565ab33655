"""The flags about serving, authentication and authorization as settings of the daemon."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from trio_sched.cli.flags.flags import Flags, flag_values
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.serving_settings import (
    AuthenticationSettings,
    AuthorizationSettings,
    CertificateFiles,
    RequestHeaderSettings,
    ServingSettings,
    TlsServerSettings,
)
from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.files import UNREADABLE, describe_os_error
from trio_sched.kube_client.kubeconfig.in_cluster import SERVICE_ACCOUNT, in_cluster_settings
from trio_sched.kube_client.kubeconfig.kubeconfig import load_kubeconfig
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.objects.timestamps import SECOND_NS

log = logging.getLogger(__name__)


def serving_settings(
    flags: Flags, *, environ: Mapping[str, str] | None = None, service_account: Path = SERVICE_ACCOUNT
) -> ServingSettings:
    """What *flags*, with a secure port, say about serving.

    Args:
        flags: the command line.
        environ: the process environment; tells whether this is a pod.
        service_account: where the token of the pod is.

    Raises:
        ConfigError: a kubeconfig cannot be used; everything else is checked by `check_serving`.
    """
    variables = os.environ if environ is None else environ
    return ServingSettings(
        bind_address=flags["bind-address"],
        port=flags["secure-port"],
        share_port=flags["permit-port-sharing"],
        http2=not flags["disable-http2-serving"],
        max_streams=flags["http2-max-streams-per-connection"],
        tls=_tls(flags),
        authentication=_authentication(flags, variables, service_account),
        authorization=_authorization(flags, variables, service_account),
        ui=flags["ui"],
        flags=flag_values(flags),
    )


def _tls(flags: Flags) -> TlsServerSettings:
    certificate, key = flags["tls-cert-file"], flags["tls-private-key-file"]
    files = CertificateFiles(certificate=certificate, key=key) if certificate or key else None
    sni = tuple(
        CertificateFiles(certificate=cert, key=own_key, names=names)
        for cert, own_key, names in flags["tls-sni-cert-key"]
    )
    return TlsServerSettings(
        files=files,
        directory=flags["cert-dir"],
        sni=sni,
        min_version=flags["tls-min-version"],
        cipher_suites=flags["tls-cipher-suites"],
        curves=flags["tls-curve-preferences"],
    )


def _authentication(flags: Flags, environ: Mapping[str, str], service_account: Path) -> AuthenticationSettings:
    connection = _connection(flags["authentication-kubeconfig"], "authentication", environ, service_account)
    return AuthenticationSettings(
        connection=connection,
        skip_lookup=flags["authentication-skip-lookup"],
        tolerate_lookup_failure=flags["authentication-tolerate-lookup-failure"],
        token_ttl_seconds=flags["authentication-token-webhook-cache-ttl"] / SECOND_NS,
        client_ca_file=flags["client-ca-file"],
        request_header_ca_file=flags["requestheader-client-ca-file"],
        request_header=RequestHeaderSettings(
            allowed_names=flags["requestheader-allowed-names"],
            username_headers=flags["requestheader-username-headers"],
            uid_headers=flags["requestheader-uid-headers"],
            group_headers=flags["requestheader-group-headers"],
            extra_prefixes=flags["requestheader-extra-headers-prefix"],
        ),
    )


def _authorization(flags: Flags, environ: Mapping[str, str], service_account: Path) -> AuthorizationSettings:
    connection = _connection(flags["authorization-kubeconfig"], "authorization", environ, service_account)
    return AuthorizationSettings(
        connection=connection,
        always_allow_paths=flags["authorization-always-allow-paths"],
        allowed_ttl_seconds=flags["authorization-webhook-cache-authorized-ttl"] / SECOND_NS,
        denied_ttl_seconds=flags["authorization-webhook-cache-unauthorized-ttl"] / SECOND_NS,
    )


def _connection(
    path: str, purpose: str, environ: Mapping[str, str], service_account: Path
) -> ConnectionSettings | None:
    """The API server that *path* names, or that of the pod; None if there is neither."""
    if path:
        return delegated_connection(path, purpose)
    if not (environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT")):
        return None
    try:
        return in_cluster_settings(environ, service_account=service_account)
    except KubeconfigError as error:
        log.warning("failed to read in-cluster kubeconfig for delegated %s: %s", purpose, error)
        return None


def delegated_connection(path: str, purpose: str) -> ConnectionSettings:
    """The API server in the kubeconfig at *path*, to ask about ``authentication`` or ``authorization``.

    Raises:
        ConfigError: it cannot be used.
    """
    failed = f"failed to get delegated {purpose} kubeconfig: "
    if purpose == "authentication":
        failed *= 2  # kube-scheduler says so twice there
    try:
        os.stat(path)
    except UNREADABLE as error:
        raise ConfigError.of(f"{failed}stat {path}: {describe_os_error(error)}") from error
    try:
        return load_kubeconfig(path)
    except KubeconfigError as error:
        raise ConfigError.of(f"{failed}{error}") from error
