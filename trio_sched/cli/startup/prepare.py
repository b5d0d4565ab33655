"""Everything between the command line and the first connection: reads and checks what will be run.

The checks come in kube-scheduler's order, because the first that fails is the one a user sees: feature gates, logging,
options, configuration, kubeconfig, serving, clients, extenders, profiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from trio_sched.cli.flags.flags import (
    Flags,
    MissingFeatureError,
    logging_problems,
    option_problems,
)
from trio_sched.cli.startup.configuration_choice import choose_configuration
from trio_sched.cli.startup.configuration_text import ConfigurationText
from trio_sched.cli.startup.plugin_places import PluginPlaces
from trio_sched.config.errors import ConfigError
from trio_sched.config.expansion import PointsOf, used_profile
from trio_sched.config.extenders import apply_extenders
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.resolved_profile import ResolvedProfile, resolve_profiles
from trio_sched.config.schema import Extender, LeaderElection, SchedulerConfig
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.files import read_file
from trio_sched.kube_client.http.tls import build_context
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings

if TYPE_CHECKING:
    from trio_sched.daemon.serving_settings import ServingSettings

_JITTER: Final = 1.2
"""Retries of the election are spread over this factor of their period."""

_LATER_GATES: Final = {
    "DRADerivedAttributes": "derived attributes of devices are",
    "DRADeviceCompatibilityGroups": "compatibility groups of devices are",
    "DRAOptionalNodeOperations": "skipped operations of nodes on devices are",
    "InPlacePodVerticalScalingSchedulerPreemption": "preemption for pods that are resized is",
    "SchedulerAsyncAPICalls": "merging of API calls is",
}
"""Gates whose feature does not exist yet, with the words for it; all of them are off by default."""


class LoggingOptionsError(ConfigError):
    """The flags about logging contradict each other; it is printed, since there is no log yet."""


@frozen(kw_only=True)
class Prepared:
    """A start that has passed all checks."""

    flags: Flags
    gates: FeatureGates
    config: SchedulerConfig
    """The effective configuration: as dumped, with the arguments of the plugins that run."""
    profiles: tuple[ResolvedProfile, ...]
    """What each profile is to run."""
    connection: ConnectionSettings
    serving: ServingSettings | None
    """None: nothing is served."""
    source: ConfigurationText
    """Where *config* comes from."""
    places: PluginPlaces
    """Where it names which plugin."""

    def effective_yaml(self) -> str:
        """The effective configuration as ``--write-config-to`` writes it."""
        from trio_sched.config.dump import dump_configuration

        return dump_configuration(self.config)


def check_logging(flags: Flags) -> FeatureGates:
    """The feature gates, once the flags about logging have been checked: whatever follows is logged as they say.

    Raises:
        ConfigError: the gates are wrong.
        LoggingOptionsError: the flags about logging are.
    """
    gates = flags.feature_gates()
    if problems := list(logging_problems(flags, gates)):
        raise LoggingOptionsError(problems)
    return gates


def prepare(
    flags: Flags, *, points_of: PointsOf = KNOWN_PLUGINS, connection: ConnectionSettings | None = None
) -> Prepared:
    """Read and check everything that *flags* name; nothing is connected to, nothing written.

    Args:
        flags: the command line.
        points_of: every plugin there is, with the extension points that it implements.
        connection: the API server, for a process that runs and serves already: its port is taken, by itself. None: the
            one that the configuration or the flags name.

    Raises:
        LoggingOptionsError: to be printed as it is.
        TrioSchedError: anything else that keeps the scheduler from starting; the text is kube-scheduler's where it has
            one.
    """
    gates = check_logging(flags)
    if problems := [*gates.out_of_range(), *option_problems(flags, gates)]:
        raise ConfigError(problems)
    if connection is None:  # else, as in a simulation, nothing of this is needed: it is not even imported
        from trio_sched.cli.flags.serving_checks import check_certificate_directory

        check_certificate_directory(flags)
    source = choose_configuration(flags, connected=connection is None)
    config = source.load(flags.overrides(), gates)
    if connection is None:
        from trio_sched.cli.flags.serving_checks import check_serving
        from trio_sched.kube_client.kubeconfig.kubeconfig import load_kubeconfig

        connection = load_kubeconfig(config.client_connection.kubeconfig, master=flags.master)
        check_serving(flags, starts=not flags.write_config_to)
    serving = None
    if flags["secure-port"]:
        from trio_sched.cli.flags.serving_options import serving_settings

        serving = serving_settings(flags)
    _check_client(config)
    for extender in config.extenders:
        check_extender(extender)
    config = apply_extenders(config)
    places = PluginPlaces(flags.config, source, gates)
    with places.named_in_errors():
        profiles = resolve_profiles(config, points_of, gates)
        config = evolve(config, profiles=tuple(used_profile(profile, points_of) for profile in config.profiles))
    if not flags.write_config_to:
        _refuse_missing_features(gates)
    return Prepared(
        flags=flags,
        gates=gates,
        config=config,
        profiles=profiles,
        connection=connection,
        serving=serving,
        source=source,
        places=places,
    )


def check_elector(election: LeaderElection) -> None:
    """Refuse a lease duration, renew deadline and retry period that no election can work with.

    Those of flags without a file have not been validated.

    Raises:
        ConfigError: naming the relation that does not hold.
    """
    lease, renew, retry = election.lease_duration_ns, election.renew_deadline_ns, election.retry_period_ns
    checks = (
        (lease > renew, "leaseDuration must be greater than renewDeadline"),
        # In floating point on purpose: 12s and 10s are refused, 12001ms and 10s are not.
        (renew > int(_JITTER * retry), "renewDeadline must be greater than retryPeriod*JitterFactor"),
        (lease >= 1, "leaseDuration must be greater than zero"),
        (renew >= 1, "renewDeadline must be greater than zero"),
        (retry >= 1, "retryPeriod must be greater than zero"),
    )
    for holds, problem in checks:
        if not holds:
            raise ConfigError.of(f"couldn't create leader elector: {problem}")


def _check_client(config: SchedulerConfig) -> None:
    """What the clients and the lock refuse; only values that have not been validated can be wrong here."""
    connection, election = config.client_connection, config.leader_election
    if connection.qps > 0 and connection.burst <= 0:
        raise ConfigError.of(
            "burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0"
        )
    lock = election.resource_lock
    if election.leader_elect and lock != "leases":
        match lock:
            case "endpoints" | "configmaps" | "endpointsleases":
                problem = f"{lock} lock is removed, migrate to leases"
            case "configmapsleases":
                problem = f"{lock} lock is removed, migrated to leases"
            case _:
                problem = f"Invalid lock-type {lock}"
        raise ConfigError.of(f"couldn't create resource lock: {problem}")


def check_extender(extender: Extender) -> None:
    """Whether the certificates of *extender* can be used.

    Raises:
        ConfigError: they cannot be read, or are malformed.
    """
    tls = extender.tls_config
    if tls is None:
        return
    trusted = bool(tls.ca_file or tls.ca_data)
    shown = bool(tls.cert_file or tls.cert_data) and bool(tls.key_file or tls.key_data)
    insecure = tls.insecure or (extender.enable_https and not trusted)
    if not (trusted or shown or insecure or tls.server_name):
        return
    try:
        if trusted and insecure:
            raise ConfigError.of("specifying a root certificates file with the insecure flag is not allowed")
        authority = tls.ca_data or read_file(tls.ca_file)
        certificate = tls.cert_data or read_file(tls.cert_file)
        key = tls.key_data or read_file(tls.key_file)
        # A certificate without a key is not used.
        pair = (certificate, key) if shown else (b"", b"")
        build_context(TlsSettings(insecure_skip_verify=insecure), (authority, *pair))
    except TrioSchedError as error:
        raise ConfigError.of(f"couldn't build extenders: {error}") from error


def _refuse_missing_features(gates: FeatureGates) -> None:
    """Refuse a configuration that needs a feature which does not exist yet."""
    for gate, feature in _LATER_GATES.items():
        if gates.enabled(gate):
            raise MissingFeatureError(f"feature gate {gate}: {feature} not supported yet; leave it off")
