"""``trio-sched rbac``: the roles that a configuration needs, as manifests."""

from typing import Any

import click
import yaml

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.options.daemon_settings import daemon_settings
from trio_sched.cli.plugin_loading.chosen_plugins import PointsByPlugin
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection, plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.startup.prepare import prepare
from trio_sched.config.feature_gates import DEFAULT_VERSION, NEWEST_VERSION
from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.daemon.permissions import Rule, cluster_rules, election_rules, union_of
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulation.loaded_plugins import load_profiles

_GROUP = "rbac.authorization.k8s.io"


@click.command(short_help="Print the roles that a configuration needs.")
@click.option(
    "--config", "path", default="", metavar="FILE", help="The configuration file; the default one without it."
)
@click.option("--feature-gates", metavar="NAME=BOOL,...", default="", help="As kube-scheduler's flag.")
@click.option("--name", default="trio-sched", show_default=True, help="Of the roles and their bindings.")
@click.option("--namespace", default="kube-system", show_default=True, help="Of the service account.")
@click.option("--service-account", default="trio-sched", show_default=True, help="The one that the scheduler runs as.")
@click.option(
    "--emulated-version",
    metavar="VERSION",
    default="",
    help="As kube-scheduler's flag; without it the roles fit every API server, by whose version the scheduler goes.",
)
@plugin_options
@click.option("--shadow", is_flag=True, help="For a shadow, which only reads.")
@click.option("--rules", "rules_only", is_flag=True, help="Print the rules of the ClusterRole only, as a list.")
def rbac(
    path: str,
    feature_gates: str,
    name: str,
    namespace: str,
    service_account: str,
    emulated_version: str,
    shadow: bool,
    rules_only: bool,
    **plugins: Any,
) -> ExitCode:
    """Print the roles that the scheduler needs to run with a configuration, and bindings to its service account.

    They follow from the plugins that the configuration enables: what they read, what they register for, and what they
    say that they write. Plugins of other packages have to be installed here, or be given as files.
    """
    versions = _in_all_versions(path, feature_gates, selection_of(plugins), emulated_version)
    loaded = versions[0]
    union = union_of(rule for one in versions for rule in cluster_rules(one, read_only=shadow))
    rules = [rule.as_manifest() for rule in union]
    if rules_only:
        click.echo(_yaml(rules), nl=False)
        return ExitCode.OK
    election = loaded.settings.config.leader_election
    subject = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    documents = [
        {**_head("ClusterRole", name), "rules": rules},
        _binding("ClusterRoleBinding", name, "", "ClusterRole", name, subject),
        _binding(
            "RoleBinding",
            f"{name}-authentication-reader",
            "kube-system",
            "Role",
            "extension-apiserver-authentication-reader",
            subject,
        ),
    ]
    if election.leader_elect and not shadow:
        lease, where = f"{name}-leader-election", election.resource_namespace
        sharding = loaded.settings.config.sharding
        of_election = election_rules(election.resource_name, 0 if sharding is None else sharding.shards)
        documents += [
            {**_head("Role", lease, where), "rules": _manifests(of_election)},
            _binding("RoleBinding", lease, where, "Role", lease, subject),
        ]
    click.echo("---\n".join(map(_yaml, documents)), nl=False)
    return ExitCode.OK


def _in_all_versions(
    path: str, feature_gates: str, selection: PluginSelection, emulated_version: str
) -> list[LoadedProfiles]:
    """The plugins as they are in each version that a scheduler may emulate; some gates and fields are of one only.

    Raises:
        TrioSchedError: a scheduler would not start with the configuration in any of them.
    """
    default, newest = (".".join(map(str, version)) for version in (DEFAULT_VERSION, NEWEST_VERSION))
    loaded: list[LoadedProfiles] = []
    problems: list[TrioSchedError] = []
    for version in [emulated_version] if emulated_version else [default, newest]:
        try:
            loaded.append(load_configuration(path, feature_gates, selection, version))
        except TrioSchedError as error:
            problems.append(error)
    if not loaded:
        raise problems[0]
    return loaded


def load_configuration(
    path: str, feature_gates: str, selection: PluginSelection, emulated_version: str = ""
) -> LoadedProfiles:
    """The plugins of the configuration at *path*, instantiated.

    Raises:
        TrioSchedError: a scheduler would not start with it.
    """
    registry = selection.registry()
    given = {"--config": path, "--feature-gates": feature_gates, "--emulated-version": emulated_version}
    flags = parse_flags([f"{flag}={value}" for flag, value in given.items() if value])
    connection = ConnectionSettings(server="https://cluster.invalid")
    prepared = prepare(flags, points_of=PointsByPlugin(registry), connection=connection)
    return load_profiles(daemon_settings(prepared, registry))


def _manifests(rules: list[Rule]) -> list[dict[str, Any]]:
    return [rule.as_manifest() for rule in rules]


def _head(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata}


def _binding(kind: str, name: str, namespace: str, role_kind: str, role: str, subject: Any) -> dict[str, Any]:
    role_ref = {"apiGroup": _GROUP, "kind": role_kind, "name": role}
    return {**_head(kind, name, namespace), "roleRef": role_ref, "subjects": [subject]}


class _Dumper(yaml.SafeDumper):
    """Writes lists with an indent, and repeats instead of referring."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _yaml(document: Any) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=120)
