"""Reads a kubeconfig: from YAML to :class:`ConnectionSettings`, with the error texts of kube-scheduler.

One explicit file, never ``$KUBECONFIG`` or the one in the home directory, never several merged. Unknown fields and
duplicate keys are ignored, as by kubectl.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from trio_sched.documents.files import read_bytes
from trio_sched.go.text import quote
from trio_sched.kube_client.credentials.credentials import check_credentials
from trio_sched.kube_client.credentials.exec_plugin import API_VERSIONS
from trio_sched.kube_client.credentials.token_file import token_in
from trio_sched.kube_client.errors import CredentialsError, KubeconfigError
from trio_sched.kube_client.files import UNREADABLE, describe_open_error
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.kubeconfig.in_cluster import SERVICE_ACCOUNT, in_cluster_settings
from trio_sched.kube_client.kubeconfig.kubeconfig_file import Cluster, Kubeconfig, User, read_kubeconfig
from trio_sched.kube_client.kubeconfig.kubeconfig_rules import EMPTY_CONFIGURATION, check_usable, invalid
from trio_sched.kube_client.server_url import normalise_server
from trio_sched.kube_client.settings import ConnectionSettings, ExecSettings, Impersonation, TlsSettings

log = logging.getLogger(__name__)


def load_kubeconfig(
    path: str,
    *,
    master: str = "",
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> ConnectionSettings:
    """The connection settings from *path*, from *master*, or from the service account of the pod.

    Args:
        path: a kubeconfig file; empty for none.
        master: a URL that replaces the server in the file.
        environ: the process environment; only used if *path* and *master* are both empty.
        service_account: where the token of the pod is; likewise.

    Raises:
        KubeconfigError: the text is kube-scheduler's.
    """
    if not path and not master:
        log.warning(
            "Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work."
        )
        try:
            settings = in_cluster_settings(os.environ if environ is None else environ, service_account=service_account)
        except KubeconfigError as problem:
            log.warning("error creating inClusterConfig, falling back to default config: %s", problem)
            raise invalid([EMPTY_CONFIGURATION]) from problem
        server = normalise_server(settings.server, has_tls_settings=True)
        return evolve(settings, server=server, token=_initial_token(settings.token_file))
    config = read_kubeconfig(path) if path else Kubeconfig()
    return settings_of(config, master=master)


def settings_of(config: Kubeconfig, *, master: str = "") -> ConnectionSettings:
    """The settings of the current context of *config*.

    Raises:
        KubeconfigError: they are contradictory, incomplete, or name files that do not exist.
    """
    context = config.contexts.get(config.current_context)
    cluster = config.clusters.get(context.cluster) if context else None
    user = config.users.get(context.user) if context else None
    if master:
        # The certificate's name belongs to the server that was replaced.
        cluster = (cluster or Cluster()).with_server(master)
    check_usable(config, context, cluster, user)
    assert cluster is not None  # check_usable raises otherwise
    server = normalise_server(cluster.server, has_tls_settings=cluster.has_tls_settings)
    is_tls = server.startswith("https://")
    user = user or User()
    settings = ConnectionSettings(
        server=server,
        namespace=context.namespace if context else "",
        tls=_tls(cluster, user) if is_tls else TlsSettings(),
        proxy_url=cluster.proxy_url,
        disable_compression=cluster.disable_compression,
        username=user.username,
        password=user.password,
        token=user.token or (_initial_token(user.token_file) if is_tls else ""),
        token_file=user.token_file,
        exec_plugin=_exec(user, cluster, server),
        impersonation=Impersonation(
            user=user.impersonate,
            uid=user.impersonate_uid,
            groups=user.impersonate_groups,
            extra=user.impersonate_extra,
        ),
    )
    check_credentials(settings if is_tls else evolve(settings, token=""))  # which plain connections do not get
    if is_tls:
        _check_methods(settings, user)
        TlsSource(settings.tls).context()
    return settings


def _tls(cluster: Cluster, user: User) -> TlsSettings:
    return TlsSettings(
        ca_file=cluster.certificate_authority,
        ca_data=cluster.certificate_authority_data,
        insecure_skip_verify=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        client_certificate_file=user.client_certificate,
        client_certificate_data=user.client_certificate_data,
        client_key_file=user.client_key,
        client_key_data=user.client_key_data,
    )


def _initial_token(path: str) -> str:
    """The token in the file *path*, which must be usable at the start; empty for an empty path."""
    if not path:
        return ""
    try:
        content = read_bytes(path)
    except UNREADABLE as problem:
        raise KubeconfigError(describe_open_error(path, problem)) from problem
    try:
        return token_in(content, path)
    except CredentialsError as problem:
        raise KubeconfigError(str(problem)) from problem


def _exec(user: User, cluster: Cluster, server: str) -> ExecSettings | None:
    plugin = user.exec_plugin
    if plugin is None:
        return None
    return ExecSettings(
        api_version=plugin.api_version,
        command=plugin.command,
        args=plugin.args,
        env=plugin.env,
        install_hint=plugin.install_hint,
        interactive_mode=plugin.interactive_mode,
        cluster_info=cluster.exec_info(server) if plugin.provide_cluster_info else None,
    )


def _check_methods(settings: ConnectionSettings, user: User) -> None:
    """Check what kube-scheduler checks only when it builds its transport."""
    if user.auth_provider is not None:
        raise KubeconfigError(f"no Auth Provider found for name {quote(user.auth_provider)}")
    plugin = settings.exec_plugin
    if plugin is not None and plugin.api_version not in API_VERSIONS:
        raise KubeconfigError(f"exec plugin: invalid apiVersion {quote(plugin.api_version)}")
    if (settings.username or settings.password) and (settings.token or settings.token_file):
        raise KubeconfigError("username/password or bearer token may be set, but not both")
