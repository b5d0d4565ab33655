"""``trio-sched check-config``: errors and warnings, such as of arguments for plugins that are not enabled."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import frozen

from trio_sched.cli.plugin_loading.chosen_plugins import PointsByPlugin
from trio_sched.cli.plugin_loading.plugin_selection import plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.startup.configuration_files import read_configuration_file
from trio_sched.cli.startup.prepare import check_elector, check_extender
from trio_sched.config.errors import ConfigError, Finding
from trio_sched.config.extenders import apply_extenders
from trio_sched.config.feature_gates import FeatureGates, known_gates, resolve_feature_gates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.legacy import is_policy, read_legacy_configuration
from trio_sched.config.load import check_configuration
from trio_sched.config.parse import parse_with_findings
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.plugins.kind_mistakes import kind_mistakes
from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import MAX_BYTES, decode_text, read_stream
from trio_sched.documents.lines import FieldLines
from trio_sched.documents.tree import plain
from trio_sched.engine.hooks.plugin_errors import PluginArgsError, PluginError
from trio_sched.engine.registry.likely_mistakes import likely_mistakes
from trio_sched.engine.registry.plugin_args import plugin_args
from trio_sched.engine.registry.plugin_registry import PluginRegistry, is_built_in
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.go.text import printable, shortened

if TYPE_CHECKING:
    from trio_sched.cli.commands.checked_cluster import CheckedCluster
    from trio_sched.daemon.cluster_check import ClusterFindings

_HELP: Final = """\
Say everything that is wrong with configuration files: fields, values, plugins and their arguments.

FILE is a KubeSchedulerConfiguration, or - for the standard input. Files that a configuration names (kubeconfig,
certificates) are not looked at, because they are on another host as a rule. Nothing is connected to, unless --context
or --kubeconfig names a cluster: then also what that does not serve, or not allow, of what the configuration needs. It
is read as a scheduler there would read it, of 1.37 on a server of 1.37. Rights are those of the credentials; with --as
those of another user, as kubectl has it.

\b
Exit code 0: nothing is wrong; 1: something is, in at least one file; 2: the command itself was wrong.
"""
_FORMER: Final = "configuration of a former version; it is converted at every start"


@frozen(kw_only=True)
class Problem:
    """One thing that is wrong in a file, or will be."""

    path: str
    line: int | None
    message: str
    suggestion: str = ""
    is_warning: bool = False

    @property
    def text(self) -> str:
        """In one line."""
        place = f"{self.line}: " if self.line is not None else " "
        path = f"{self.path}: " if self.path else ""
        near = f"; did you mean {self.suggestion!r}?" if self.suggestion else ""
        return f"{place}{'warning: ' if self.is_warning else ''}{path}{self.message}{near}"

    def as_data(self) -> dict[str, Any]:
        """For ``--output json``."""
        return {
            "severity": "warning" if self.is_warning else "error",
            "path": self.path,
            "line": self.line,
            "message": self.message,
            "suggestion": self.suggestion or None,
        }


@click.command("check-config", help=_HELP, short_help="Say everything that is wrong with configuration files.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--feature-gates", metavar="NAME=BOOL,...", default="", help="As kube-scheduler's flag.")
@plugin_options
@click.option("--emulated-version", metavar="VERSION", default="", help="As kube-scheduler's flag.")
@click.option("--kubeconfig", metavar="FILE", help="Check for the cluster of this kubeconfig, too; see --context.")
@click.option(
    "--context",
    metavar="NAME",
    help="Check for the cluster of this context, too; $KUBECONFIG or ~/.kube/config without --kubeconfig.",
)
@click.option(
    "--as", "user", metavar="USER", help="Whose rights: system:serviceaccount:kube-system:trio-sched for instance."
)
def check_config(
    files: tuple[str, ...],
    output: str,
    feature_gates: str,
    emulated_version: str,
    kubeconfig: str | None,
    context: str | None,
    user: str | None,
    **plugins: Any,
) -> ExitCode:
    """Check *files* and show what was found."""
    cluster = _cluster(files, kubeconfig, context, user)
    if cluster is not None and not emulated_version:
        emulated_version = cluster.emulated_version()
    gates = _gates(feature_gates, emulated_version)
    selection = selection_of(plugins)
    registry, unusable = selection.registry_and_errors()
    found = {file: list(_check(file, gates, registry)) for file in dict.fromkeys(files)}
    clusters: dict[str, ClusterFindings] = {}
    if cluster is not None:
        for file, problems in found.items():
            if all(problem.is_warning for problem in problems):
                findings = cluster.findings(file, feature_gates, emulated_version, selection)
                problems += _cluster_problems(findings)
                if not isinstance(findings, TrioSchedError):
                    clusters[file] = findings
    for error in unusable:
        found.setdefault(error.path, []).append(Problem(path="", line=error.line, message=error.problem))
    is_wrong = any(not problem.is_warning for problems in found.values() for problem in problems)
    if clusters:
        from trio_sched.cli.commands.checked_cluster import as_data, summary
    if output == "json":
        listed = [
            {
                "file": file,
                "ok": all(problem.is_warning for problem in problems),
                "problems": [problem.as_data() for problem in problems],
                **({"cluster": as_data(clusters[file])} if file in clusters else {}),
            }
            for file, problems in found.items()
        ]
        click.echo(json.dumps({"ok": not is_wrong, "files": listed}, indent=2))
    else:
        for file, problems in found.items():
            for problem in problems:
                click.echo(printable(f"{file}:{problem.text}"))
            if not problems:
                click.echo(printable(f"{file}: ok"))
            if file in clusters:
                click.echo(printable(f"{file}: {summary(clusters[file])}"))
    return ExitCode.FAILURE if is_wrong else ExitCode.OK


def _cluster(
    files: tuple[str, ...], kubeconfig: str | None, context: str | None, user: str | None
) -> CheckedCluster | None:
    """The cluster that the options name, if they do.

    Raises:
        click.UsageError: they do not fit together.
        KubeconfigError: the kubeconfig is unusable.
    """
    if kubeconfig is None and context is None and user is None:
        return None
    from trio_sched.cli.commands.checked_cluster import CheckedCluster  # all of a daemon

    if "-" in files:
        raise click.UsageError("--context and --kubeconfig need the configuration as a file")
    return CheckedCluster.of_options(kubeconfig, context, user)


def _cluster_problems(found: ClusterFindings | TrioSchedError) -> Iterator[Problem]:
    from trio_sched.cli.commands.checked_cluster import messages

    if isinstance(found, TrioSchedError):
        yield Problem(path="", line=None, message=f"the cluster could not be looked at: {found}")
        return
    for message, is_error in messages(found):
        yield Problem(path="", line=None, message=message, is_warning=not is_error)


def _gates(settings: str, version: str) -> FeatureGates:
    """The feature gates.

    Raises:
        click.UsageError: they are wrong; with a suggestion for a name that does not exist.
    """
    known = known_gates()
    try:
        known = known_gates(resolve_feature_gates(emulated=[version]).version)
        gates = resolve_feature_gates([settings], emulated=[version])
    except ConfigError as error:
        unknown = str(error).removeprefix("unrecognized feature gate: ")
        near = nearest_name(unknown, known) if unknown != str(error) else None
        raise click.UsageError(f"{error}{f'; did you mean {near!r}?' if near else ''}") from error
    if problems := gates.out_of_range():
        raise click.UsageError(str(ConfigError(problems)))
    return gates


def _check(file: str, gates: FeatureGates, registry: PluginRegistry) -> Iterator[Problem]:
    """What is wrong in *file*, from its top to its end."""
    try:
        text = _standard_input() if file == "-" else read_configuration_file(file)
    except ConfigError as error:
        yield Problem(path="", line=None, message=f"{error.place or error}")
        return
    if is_policy(text):
        hint = "this is a policy; `trio-sched convert-config` prints the configuration to use instead"
        yield Problem(path="", line=None, message=hint)
        return
    source, is_converted = text, False
    try:
        legacy = read_legacy_configuration(text)
        if legacy is not None and legacy.policy_source is None:
            source, is_converted = legacy.convert().text(), True
            hint = f"{_FORMER}; use what `trio-sched convert-config` prints, which the paths below are about"
            yield Problem(path="apiVersion", line=FieldLines(text).line("apiVersion"), message=hint, is_warning=True)
    except ConfigError as error:
        for problem in error.problems:
            yield Problem(path=problem.path, line=FieldLines(text).line(problem.path), message=problem.message)
        return
    lines = FieldLines("" if is_converted else source)
    problems = [_placed(finding, lines) for finding in all_findings(source, gates, registry)]
    yield from sorted(problems, key=lambda problem: problem.line or 0)


def _placed(finding: Finding, lines: FieldLines) -> Problem:
    is_warning = isinstance(finding, Warned)
    line = lines.line(finding.path)
    return Problem(
        path=finding.path,
        line=line,
        message=finding.message,
        suggestion=finding.suggestion,
        is_warning=is_warning,
    )


class Warned(Finding):
    """What a scheduler only warns about."""


def all_findings(text: str, gates: FeatureGates, registry: PluginRegistry) -> Iterator[Finding]:
    """Everything that is wrong with the v1 configuration *text*, or will be; in no order."""
    config, findings = check_configuration(text, gates)
    yield from findings
    try:
        given, _ = parse_with_findings(text, gates)
    except ConfigError:
        return  # it is among the findings
    known = [*findings, *_plugin_findings(given, registry)]
    yield from known[len(findings) :]
    if config is not None and not any(not isinstance(one, Warned) for one in known):
        yield from _start_findings(config, gates, registry)


def _plugin_findings(given: Mapping[str, Any], registry: PluginRegistry) -> Iterator[Finding]:
    """Plugins that are named and not there, and arguments that do not fit theirs."""
    for index, profile in enumerate(given.get("profiles") or ()):
        place = f"profiles[{index}]"
        enabled: set[str] = set()
        for point, plugin_set in (profile.get("plugins") or {}).items():
            for list_name in ("enabled", "disabled"):
                for entry_index, entry in enumerate((plugin_set or {}).get(list_name) or ()):
                    name = entry.get("name", "")
                    if list_name == "enabled":
                        enabled.add(name)
                    path = f"{place}.plugins.{point}.{list_name}[{entry_index}].name"
                    yield from _name_findings(path, name, registry, is_enabled=list_name == "enabled")
        for entry_index, entry in enumerate(profile.get("pluginConfig") or ()):
            name, path = entry.get("name", ""), f"{place}.pluginConfig[{entry_index}]"
            if name not in enabled:
                yield from _name_findings(f"{path}.name", name, registry, is_enabled=False)
            if name in registry and name not in KNOWN_PLUGINS:
                if name not in enabled:
                    hint = f"plugin {name!r} is not enabled in this profile, so its arguments have no effect"
                    yield Warned(f"{path}.name", hint)
                yield from _argument_findings(path, name, entry.get("args"), registry)


def _name_findings(path: str, name: str, registry: PluginRegistry, *, is_enabled: bool) -> Iterator[Finding]:
    if name in registry and is_enabled:
        yield from _mistakes(path, name, registry)
    if not name or name in registry or (name == "*" and not is_enabled):
        return
    near = nearest_name(name, registry.names) or ""
    kind = Finding if is_enabled else Warned
    yield kind(path, f"no installed distribution offers a plugin named {shortened(name)!r}", near)


def _mistakes(path: str, name: str, registry: PluginRegistry) -> Iterator[Finding]:
    """What the class of an enabled plugin has that its author hardly meant; what cannot be loaded is said elsewhere."""
    try:
        plugin = registry.load(name)
    except PluginError:
        return
    if not is_built_in(plugin):
        for mistake in (*likely_mistakes(plugin), *kind_mistakes(plugin, ())):
            yield Warned(path, f"plugin {name!r}: {mistake}")


def _argument_findings(path: str, name: str, given: Any, registry: PluginRegistry) -> Iterator[Finding]:
    try:
        plugin_args(name, registry.load(name), None if given is None else plain(given))
    except PluginArgsError as error:
        for problem in error.problems:
            field, separator, message = problem.partition(": ")
            is_field = bool(separator) and field.startswith("args")
            yield Finding(f"{path}.{field}" if is_field else f"{path}.args", message if is_field else problem)
    except PluginError as error:
        yield Finding(f"{path}.name", str(error))


def _start_findings(config: SchedulerConfig, gates: FeatureGates, registry: PluginRegistry) -> Iterator[Finding]:
    """What only a start finds out about a valid configuration whose plugins are there."""
    try:
        resolve_profiles(apply_extenders(config), PointsByPlugin(registry), gates)
    except TrioSchedError as error:
        yield Finding("profiles", f"{error}. {error.hint}" if error.hint else str(error))
    for index, extender in enumerate(config.extenders):
        tls = extender.tls_config
        if tls is not None and not (tls.ca_file or tls.cert_file or tls.key_file):
            try:
                check_extender(extender)
            except ConfigError as error:
                yield Finding(f"extenders[{index}].tlsConfig", str(error))
    election = config.leader_election
    if election.leader_elect:
        try:
            check_elector(election)
        except ConfigError as error:
            yield Finding("leaderElection", str(error))


def _standard_input() -> str:
    """The text on the standard input.

    Raises:
        ConfigError: there is none, it is too long, or not UTF-8.
    """
    if sys.stdin is None:
        raise ConfigError.of("there is no standard input; it is closed")
    try:
        return decode_text(read_stream(sys.stdin.buffer, max_bytes=MAX_BYTES))
    except (DocumentError, OSError) as error:
        raise ConfigError.of(f"standard input: {error}") from error
