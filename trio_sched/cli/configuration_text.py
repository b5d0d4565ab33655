"""Reads the configuration that a command line names, and converts it if it is one of former versions."""

import logging
from typing import Final

from attrs import frozen

from trio_sched.cli.flags import Flags
from trio_sched.cli.legacy_flags import LEGACY_NAMES
from trio_sched.config.errors import ConfigError, Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.legacy import (
    Conversion,
    OldStart,
    PolicyConfigMap,
    PolicySource,
    chosen_policy,
    convert_start,
    is_policy,
    read_legacy_configuration,
)
from trio_sched.config.load import load_configuration
from trio_sched.config.schema import SchedulerConfig
from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import MAX_BYTES, decode_text, read_bytes
from trio_sched.kube_client.files import UNREADABLE, describe_open_error, describe_os_error
from trio_sched.kube_client.kubeconfig import load_kubeconfig

log = logging.getLogger(__name__)

_GONE: Final = {
    "google-json-key": "credentials of a cloud are no part of the scheduler any more; "
    "use a kubeconfig whose user has an exec plugin",
}


_POLICY_HINT: Final = (
    "this is a policy; give it with --policy-config-file instead of --config, or use what "
    "`trio-sched convert-config POLICY_FILE` prints"
)


@frozen(kw_only=True)
class ConfigurationText:
    """A configuration in v1, and its origin."""

    path: str = ""
    """The file; empty if there is none."""
    text: str | None
    """The v1 document; None if there is none and no flag of former versions."""
    conversion: Conversion | None = None
    """The conversion that made it; None if it was v1 already."""
    ignored: tuple[str, ...] = ()
    """Flags of former versions that were given and are ignored beside a configuration file."""

    def load(self, flags: FlagOverrides, gates: FeatureGates) -> SchedulerConfig:
        """The completed configuration.

        Raises:
            ConfigError: it is malformed or invalid.
        """
        try:
            return load_configuration(self.text, flags=flags, gates=gates)
        except ConfigError as error:
            if self.conversion is None:
                if self.text is not None and is_policy(self.text):
                    error.hint = _POLICY_HINT
                elif self.path:
                    error.hint = f"`trio-sched check-config {self.path}` says which lines, and what may be meant"
                error.place = ", ".join(filter(None, (self.path, error.place)))
                raise
            raise error.within(f"{self.conversion.source}, converted to v1: ") from error

    def warn(self) -> None:
        """Log, once, what was converted and which flags are ignored; for a v1 document nothing is logged."""
        ignored = {"ignoredFlags": ", ".join(self.ignored)} if self.ignored else {}
        if self.conversion is not None:
            log.warning(
                "configuration of a former version is converted at every start; "
                "use its v1 text instead, which `trio-sched convert-config` prints",
                extra={
                    "source": self.conversion.source,
                    "changes": "\n".join(self.conversion.notes),
                    **ignored,
                    "v1": self.conversion.text_without_keys(),
                },
            )
        elif ignored:
            log.warning("flags of former versions mean nothing beside --config; leave them out", extra=ignored)


def choose_configuration(flags: Flags, *, connected: bool = True) -> ConfigurationText:
    """Read what *flags* name: a configuration file, else what the flags of former versions mean, else nothing.

    Args:
        flags: the command line.
        connected: whether there is an API server to read a policy in a ConfigMap from.

    Raises:
        ConfigError: something cannot be read, or not be converted.
        KubeClientError: the connection to fetch a policy with is unusable.
    """
    if flags.config:
        return read_configuration(flags, flags.config, connected=connected)
    if flags.given & LEGACY_NAMES:
        return _converted_start(flags, connected=connected)
    return ConfigurationText(text=None)


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


def _converted_start(flags: Flags, *, connected: bool) -> ConfigurationText:
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
    from trio_sched.cli.policy_config_map import fetch_policy  # nobody else needs a connection that early

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
