"""Checks whether a kubeconfig is usable, with the texts of kube-scheduler in its order."""

from collections.abc import Iterator, Sequence

from trio_sched.go.text import printable, quote
from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.files import UNREADABLE, describe_open_error
from trio_sched.kube_client.http.proxy import Proxy
from trio_sched.kube_client.kubeconfig.kubeconfig_file import Cluster, Context, ExecConfig, Kubeconfig, User
from trio_sched.kube_client.server_url import host_problem, surely_redacted

EMPTY_CONFIGURATION = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
_EMPTY_CLUSTER = "cluster has no server defined"
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def invalid(problems: Sequence[str]) -> KubeconfigError:
    """One error for all *problems*: a single one as it is, several in brackets, without duplicates."""
    distinct = list(dict.fromkeys(problems))
    text = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    return KubeconfigError(f"invalid configuration: {printable(text)}")


def check_usable(config: Kubeconfig, context: Context | None, cluster: Cluster | None, user: User | None) -> None:
    """Check the current context.

    Args:
        config: the file.
        context: the current one; None if there is none of that name.
        cluster: its cluster, with the server of ``--master`` where that is given; None if there is none of that name.
        user: its user; None if there is none of that name, which is valid: requests are anonymous then.

    Raises:
        KubeconfigError: it is not usable; the text has all problems.
    """
    problems: list[str] = []
    if config.current_context and context is None:
        problems.append(f"context was not found for specified context: {config.current_context}")
    if user is not None and context is not None:
        problems.extend(_user_problems(context.user, user))
    if cluster is None:
        problems.append(_EMPTY_CLUSTER)
        if problems == [_EMPTY_CLUSTER]:
            problems = [EMPTY_CONFIGURATION]
    else:
        problems.extend(_cluster_problems(context.cluster if context else "", cluster))
    if problems:
        raise invalid(problems)


def _cluster_problems(name: str, cluster: Cluster) -> Iterator[str]:
    if not cluster.server:
        yield f"no server found for cluster {quote(name)}" if name else "default cluster has no server defined"
    if cluster.proxy_url:
        try:
            Proxy.parse_strictly(cluster.proxy_url)
        except ValueError as problem:
            shown = quote(surely_redacted(cluster.proxy_url))
            yield f"invalid 'proxy-url' {shown} for cluster {quote(name)}: {problem}"
    if cluster.tls_server_name and (problem_text := host_problem(cluster.tls_server_name)):
        yield f"invalid tls-server-name {quote(cluster.tls_server_name)} for cluster {quote(name)}: {problem_text}"
    if cluster.certificate_authority and not cluster.certificate_authority_data:
        yield from _unreadable("certificate-authority", cluster.certificate_authority, name)


def _user_problems(name: str, user: User) -> Iterator[str]:
    if user.client_certificate or user.client_certificate_data:
        if not (user.client_key or user.client_key_data):
            yield (
                f"client-key-data or client-key must be specified for {name} "
                "to use the clientCert authentication method."
            )
        if user.client_certificate and not user.client_certificate_data:
            yield from _unreadable("client-cert", user.client_certificate, name)
        if user.client_key and not user.client_key_data:
            yield from _unreadable("client-key", user.client_key, name)
    if user.exec_plugin is not None:
        if user.auth_provider is not None:
            yield f"authProvider cannot be provided in combination with an exec plugin for {name}"
        yield from _exec_problems(name, user.exec_plugin)
    methods = ["token"] if user.token else []
    if user.username or user.password:
        methods.append("basicAuth")
    if len(methods) > 1:
        found = " ".join(methods)
        yield f"more than one authentication method found for {name}; found [{found}], only one is allowed"
    if (user.impersonate_uid or user.impersonate_groups or user.impersonate_extra) and not user.impersonate:
        yield f"requesting uid, groups or user-extra for {name} without impersonating a user"


def _exec_problems(name: str, plugin: ExecConfig) -> Iterator[str]:
    needed = "to use exec authentication plugin"
    if not plugin.command:
        yield f"command must be specified for {name} {needed}"
    if not plugin.api_version:
        yield f"apiVersion must be specified for {name} {needed}"
    if any(not variable for variable, _ in plugin.env):
        yield f"env variable name must be specified for {name} {needed}"
    if not plugin.interactive_mode:
        yield f"interactiveMode must be specified for {name} {needed}"
    elif plugin.interactive_mode not in _INTERACTIVE_MODES:
        yield f"invalid interactiveMode for {name}: {quote(plugin.interactive_mode)}"


def _unreadable(what: str, path: str, name: str) -> Iterator[str]:
    try:
        with open(path, "rb"):
            pass
    except UNREADABLE as problem:
        yield f"unable to read {what} {printable(path)} for {name} due to {describe_open_error(path, problem)}"
