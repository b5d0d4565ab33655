"""Reads configuration files, and converts what former versions read: files, policies and flags."""

from typing import Final

from trio_sched.cli.flags.flags import Flags
from trio_sched.cli.flags.legacy_flags import LEGACY_NAMES
from trio_sched.cli.startup.configuration_text import ConfigurationText
from trio_sched.config.errors import ConfigError, Problem
from trio_sched.config.legacy import (
    OldStart,
    PolicyConfigMap,
    PolicySource,
    chosen_policy,
    convert_start,
    read_legacy_configuration,
)
from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import MAX_BYTES, decode_text, read_bytes
from trio_sched.kube_client.files import UNREADABLE, describe_open_error, describe_os_error

_GONE: Final = {
    "google-json-key": "credentials of a cloud are no part of the scheduler any more; "
    "use a kubeconfig whose user has an exec plugin",
}


def read_configuration(flags: Flags, path: str, *, connected: bool = True) -> ConfigurationText:
    """The configuration file at *path*, converted if it is of a former version.

    Raises:
        ConfigError: it cannot be read, or not be converted.
        KubeClientError: the connection to fetch a policy with is unusable.
    """
    text = read_configuration_file(path)
    ignored = tuple(f"--{name}" for name in sorted(flags.given & LEGACY_NAMES))
    legacy = read_legacy_configuration(text)
    if legacy is None:
        return ConfigurationText(path=path, text=text, ignored=ignored)
    source = legacy.policy_source
    policy = None if source is None else _read_policy(source, flags, legacy.kubeconfig, connected=connected)
    conversion = legacy.convert(policy)
    return ConfigurationText(text=conversion.text(), conversion=conversion, ignored=ignored)


def converted_start(flags: Flags, *, connected: bool) -> ConfigurationText:
    """What the flags of former versions mean, as a configuration file.

    Raises:
        ConfigError: a policy cannot be read, or they cannot be converted to v1.
        KubeClientError: the connection to fetch a policy with is unusable.
    """
    if problems := [Problem(f"--{name}", why) for name, why in _GONE.items() if flags[name]]:
        raise ConfigError(problems)
    if flags["use-legacy-policy-config"] and not flags["policy-config-file"]:
        raise ConfigError.of("policyConfigFile: Required value: required when --use-legacy-policy-config is true")
    source = chosen_policy(
        path=flags["policy-config-file"],
        config_map=flags["policy-configmap"],
        namespace=flags["policy-configmap-namespace"],
        file_first=flags["use-legacy-policy-config"],
    )
    policy = None if source is None else _read_policy(source, flags, flags["kubeconfig"], connected=connected)
    return convert_policy_start(flags, policy)


def convert_policy_start(flags: Flags, policy: str | None) -> ConfigurationText:
    """What *flags* and the text of a *policy* mean, as a configuration file.

    Raises:
        ConfigError: it cannot be converted to v1.
    """
    say = {name: flags[name] for name in flags.given}.get
    start = OldStart(
        policy=policy,
        algorithm_provider=flags["algorithm-provider"],
        scheduler_name=flags["scheduler-name"],
        hard_pod_affinity_weight=say("hard-pod-affinity-symmetric-weight"),
        lock_object_name=flags["lock-object-name"],
        lock_object_namespace=flags["lock-object-namespace"],
        bind_pods_qps=say("bind-pods-qps"),
        bind_pods_burst=say("bind-pods-burst"),
        port=say("port"),
        address=flags["address"],
        failure_domains=flags["failure-domains"],
    )
    conversion = convert_start(start, flags.overrides())
    return ConfigurationText(text=conversion.text(), conversion=conversion)


def _read_policy(source: PolicySource, flags: Flags, kubeconfig: str, *, connected: bool) -> str:
    if not isinstance(source, PolicyConfigMap):
        return read_configuration_file(source.path)
    if not connected:
        where = f"{source.namespace}/{source.name}"
        raise ConfigError.of(f"the policy in ConfigMap {where} cannot be read without its cluster; put it into a file")
    from trio_sched.cli.startup.policy_config_map import fetch_policy  # nobody else needs a connection that early
    from trio_sched.kube_client.kubeconfig.kubeconfig import load_kubeconfig

    return fetch_policy(source, load_kubeconfig(kubeconfig, master=flags.master))


def read_configuration_file(path: str) -> str:
    """The text of *path*, line ends untouched.

    Raises:
        ConfigError: it cannot be read, or is not UTF-8.
    """
    try:
        content = read_bytes(path, max_bytes=MAX_BYTES)
    except IsADirectoryError as error:
        raise ConfigError.of(f"read {path}: {describe_os_error(error)}") from error
    except UNREADABLE as error:
        raise ConfigError.of(describe_open_error(path, error)) from error
    try:
        return decode_text(content)
    except DocumentError as error:
        if content.lstrip().startswith(b"{"):
            return content.decode(errors="replace")  # JSON allows what YAML does not
        problem = ConfigError.of(str(error))
        problem.place = f"{path}, {error.place}: {error.problem}"
        raise problem from error
