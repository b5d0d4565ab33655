"""Reads the text of a configuration file: from bytes of YAML or JSON to the fields that it gives.

Source: Kubernetes' strict codec: which decoder reads what, what each refuses, and in which order it reports it.
"""

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from trio_sched.config.decode import Struct, decode_strictly, decode_with_findings
from trio_sched.config.defaults import DecodedArguments
from trio_sched.config.document import STRICT, DocumentKind, StrictError, interpret, not_registered, read_document
from trio_sched.config.errors import ConfigError, Finding
from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates
from trio_sched.config.plugin_arguments.table import ARGUMENT_STRUCTS
from trio_sched.config.wire_types import API_VERSION, CONFIGURATION, CONFIGURATION_KIND, GROUP, configuration_at
from trio_sched.documents.tree import Tree
from trio_sched.go.text import shortened

_SHOWN_CHARACTERS: Final = 800
"""kube-scheduler quotes the whole document; this is more than those have in which the kind was only forgotten."""
_REGISTERED: Final[Mapping[str, Struct]] = {CONFIGURATION_KIND: CONFIGURATION} | {
    f"{plugin}Args": struct for plugin, struct in ARGUMENT_STRUCTS.items()
}
"""Every kind that can be decoded."""


def parse_configuration(text: str, gates: FeatureGates = DEFAULT_GATES) -> Mapping[str, Any]:
    """Return the fields that the configuration *text* gives, for `defaults.complete`.

    Args:
        text: the content of a configuration file.
        gates: of the version whose fields it may have.

    Raises:
        ConfigError: the text is malformed, or has unknown or duplicate fields.
    """
    tree, duplicates = read_document(text)
    kind = interpret(tree)
    _require_type_meta(kind, text)
    given, strict_errors = _decode(tree, kind, configuration_at(gates))
    if kind.kind != CONFIGURATION_KIND:
        if duplicates or strict_errors:
            raise StrictError.listing([*duplicates, *strict_errors])
        raise ConfigError.of(f"couldn't decode as KubeSchedulerConfiguration, got {API_VERSION}, Kind={kind.kind}: ")
    nested_errors = _decode_arguments(given)
    all_errors = [*duplicates, *strict_errors, *nested_errors]
    if all_errors:
        raise StrictError.listing(all_errors)
    return given


def parse_with_findings(text: str, gates: FeatureGates = DEFAULT_GATES) -> tuple[Mapping[str, Any], list[Finding]]:
    """The fields that the configuration *text* gives, and everything that is wrong with them; see above.

    Raises:
        ConfigError: the text is malformed as a whole, or of another kind or version.
    """
    tree, duplicates = read_document(text)
    kind = interpret(tree)
    _require_type_meta(kind, text)
    if kind.api_version != API_VERSION or kind.kind != CONFIGURATION_KIND:
        raise not_registered(kind)
    given, findings = decode_with_findings(tree, configuration_at(gates))
    findings += [Finding("", duplicate) for duplicate in duplicates]
    for i, profile in enumerate(given.get("profiles") or ()):
        for j, entry in enumerate(profile.get("pluginConfig") or ()):
            if entry.get("name", "") in ARGUMENT_STRUCTS:
                found = _arguments_with_findings(entry)
                path = f"profiles[{i}].pluginConfig[{j}].args"
                findings += [evolve(one, path=f"{path}.{one.path}" if one.path else path) for one in found]
    return given, findings


def _arguments_with_findings(entry: dict[str, Any]) -> list[Finding]:
    """Decode the ``args`` of *entry* in their place."""
    name, tree = entry["name"], entry.get("args")
    try:
        kind = interpret(tree)
    except ConfigError as error:
        entry["args"] = DecodedArguments({})
        return [Finding("", str(error))]
    fields, findings = decode_with_findings(tree, ARGUMENT_STRUCTS[name])
    entry["args"] = DecodedArguments(fields)
    if kind.kind not in ("", f"{name}Args"):
        findings.append(Finding("kind", f"must be {name}Args, not {shortened(kind.kind)}"))
    if kind.api_version and _with_default_version(kind.api_version) != API_VERSION:
        findings.append(Finding("apiVersion", f"must be {API_VERSION}, not {shortened(kind.api_version)}"))
    return findings


def _require_type_meta(kind: DocumentKind, text: str) -> None:
    if not kind.kind:
        raise ConfigError.of(f"Object 'Kind' is missing in '{shortened(text, _SHOWN_CHARACTERS)}'")
    if not kind.api_version.rpartition("/")[2]:
        raise ConfigError.of(f"Object 'apiVersion' is missing in '{shortened(text, _SHOWN_CHARACTERS)}'")


def _decode(tree: Tree, kind: DocumentKind, configuration: Struct = CONFIGURATION) -> tuple[dict[str, Any], list[str]]:
    if kind.api_version != API_VERSION or kind.kind not in _REGISTERED:
        raise not_registered(kind)
    return decode_strictly(tree, configuration if kind.kind == CONFIGURATION_KIND else _REGISTERED[kind.kind])


def _decode_arguments(given: Mapping[str, Any]) -> list[str]:
    """Decode every ``args`` of an in-tree plugin in its place, and return the strict errors."""
    strict_errors = []
    for i, profile in enumerate(given.get("profiles") or ()):
        for j, entry in enumerate(profile.get("pluginConfig") or ()):
            name = entry.get("name", "")
            if name not in ARGUMENT_STRUCTS:
                continue
            place = f"decoding .profiles[{i}].pluginConfig[{j}]: "
            try:
                entry["args"], errors = _decode_args_of(name, entry.get("args"))
            except ConfigError as error:
                raise error.within(place) from error
            if errors:
                inner = f"{STRICT}decoding args for plugin {name}: {STRICT}{', '.join(errors)}"
                strict_errors.append(place + inner)
    return strict_errors


def _decode_args_of(plugin: str, tree: Tree) -> tuple[DecodedArguments, list[str]]:
    wanted = f"{plugin}Args"
    try:
        kind = interpret(tree)
        kind = evolve(kind, kind=kind.kind or wanted, api_version=_with_default_version(kind.api_version))
        fields, strict_errors = _decode(tree, kind)
    except ConfigError as error:
        raise error.within(f"decoding args for plugin {plugin}: ") from error
    if kind.kind != wanted:
        raise ConfigError.of(f"args for plugin {plugin} were not of type {wanted}.{GROUP}, got {kind.kind}.{GROUP}")
    return DecodedArguments(fields), strict_errors


def _with_default_version(api_version: str) -> str:
    group, _, version = api_version.rpartition("/")
    return API_VERSION if not version and group in ("", GROUP) else api_version
