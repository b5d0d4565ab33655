"""The connection of a person's commands: the files and the context that kubectl would take."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import evolve

from trio_sched.errors import nearest_name
from trio_sched.go.text import printable, quote, shortened
from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.kubeconfig.in_cluster import in_cluster_settings
from trio_sched.kube_client.kubeconfig.kubeconfig import settings_of
from trio_sched.kube_client.kubeconfig.kubeconfig_file import Kubeconfig, read_kubeconfig
from trio_sched.kube_client.server_url import normalise_server
from trio_sched.kube_client.settings import ConnectionSettings

_SHOWN_CONTEXTS = 10


def user_settings(path: str, context: str, environ: Mapping[str, str]) -> ConnectionSettings:
    """The connection settings that kubectl would use.

    Args:
        path: a kubeconfig; empty: the files in ``$KUBECONFIG``, of which the first that has a name wins, else
            ``~/.kube/config``, else the service account of the pod.
        context: one of its contexts; empty: the current one.
        environ: the process environment.

    Raises:
        KubeconfigError: there is no kubeconfig, it lacks the context, or its settings are unusable.
    """
    listed = [one for one in environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    default = str(Path(environ.get("HOME") or "~").expanduser() / ".kube" / "config")
    candidates = [path] if path else listed or [default]
    files = candidates if path else [one for one in candidates if Path(one).exists()]
    if not files and not listed and environ.get("KUBERNETES_SERVICE_HOST") and not context:
        settings = in_cluster_settings(environ)
        return evolve(settings, server=normalise_server(settings.server, has_tls_settings=True))
    if not files:
        where = f"$KUBECONFIG names {', '.join(listed)}" if listed else f"{default} does not exist"
        raise KubeconfigError(f"there is no kubeconfig: {where}; give one with --kubeconfig FILE")
    config = _merged([read_kubeconfig(one) for one in files])
    if context and context not in config.contexts:
        raise KubeconfigError(_no_context(context, config, files))
    if not (context or config.current_context):
        raise KubeconfigError(f"{', '.join(files)}: no current-context is set; give one of them with --context NAME")
    return settings_of(evolve(config, current_context=context or config.current_context))


def _merged(configs: Sequence[Kubeconfig]) -> Kubeconfig:
    """One kubeconfig of several; what the first has, the others do not replace."""
    merged = Kubeconfig()
    for config in configs:
        merged = Kubeconfig(
            current_context=merged.current_context or config.current_context,
            clusters={**config.clusters, **merged.clusters},
            users={**config.users, **merged.users},
            contexts={**config.contexts, **merged.contexts},
        )
    return merged


def _no_context(context: str, config: Kubeconfig, files: Sequence[str]) -> str:
    text = f"{', '.join(files)}: there is no context {quote(shortened(context))}"
    if near := nearest_name(context, config.contexts):
        return f"{text}; did you mean {quote(near)}?"
    shown = ", ".join(printable(name) for name in sorted(config.contexts)[:_SHOWN_CONTEXTS])
    return f"{text}; there are: {shown}" if shown else text
