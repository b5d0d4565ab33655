"""Reads the text of a configuration file: from bytes of YAML or JSON to the fields that it gives.

Source: Kubernetes' strict codec: which decoder reads what, what each refuses, and in which order it says so.
"""

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, frozen

from trio_sched.config.decode import decode_strictly
from trio_sched.config.defaults import DecodedArguments
from trio_sched.config.errors import ConfigError, Problem
from trio_sched.config.go_text import quote
from trio_sched.config.json_reader import read_json
from trio_sched.config.tree import Object, Tree, kind_of
from trio_sched.config.wire_types import API_VERSION, ARGUMENTS, CONFIGURATION_KIND, GROUP, REGISTERED
from trio_sched.config.yaml_reader import read_yaml

_TYPE_META_STRUCT: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_INTERPRETING: Final = "couldn't get version/kind; json parse error: "
_STRICT: Final = "strict decoding error: "


@frozen
class _Kind:
    """What an object says it is."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


def parse_configuration(text: str) -> Mapping[str, Any]:
    """Return the fields that the configuration *text* gives, for `defaults.complete`.

    Raises:
        ConfigError: the text is malformed, or says what the format does not know.
    """
    try:
        tree, duplicates = _read(text)
    except RecursionError as error:
        raise ConfigError.of("exceeded max depth") from error
    kind = _interpret(tree)
    _demand_complete(kind, text)
    given, strict_errors = _decode(tree, kind)
    if kind.kind != CONFIGURATION_KIND:
        if duplicates or strict_errors:
            raise _strict_error([*duplicates, *strict_errors])
        raise ConfigError.of(f"couldn't decode as KubeSchedulerConfiguration, got {API_VERSION}, Kind={kind.kind}: ")
    nested_errors = _decode_arguments(given)
    all_errors = [*duplicates, *strict_errors, *nested_errors]
    if all_errors:
        raise _strict_error(all_errors)
    return given


def _strict_error(errors: list[str]) -> ConfigError:
    return _Strict(Problem("", error) for error in errors)


class _Strict(ConfigError):
    """Problems that only a strict reader minds, said one after the other."""

    def __str__(self) -> str:
        return self.prefix + _STRICT + ", ".join(map(str, self.problems))


def _read(text: str) -> tuple[Tree, list[str]]:
    """The document, and what the YAML library says of duplicate keys."""
    if text.lstrip(" \t\r\n\v\f").startswith("{"):
        try:
            return read_json(text), []
        except ConfigError as error:
            raise error.within(_INTERPRETING) from error
    document = read_yaml(text)
    return document.tree, [document.duplicates_text] if document.duplicates_text else []


def _interpret(tree: Tree) -> _Kind:
    """What *tree* says it is; keys are recognised whatever their case here, unlike anywhere else."""
    found = {"apiversion": "", "kind": ""}
    fields = {"apiversion": "apiVersion", "kind": "kind"}
    if tree is not None and not isinstance(tree, Object):
        problem = f"json: cannot unmarshal {kind_of(tree)} into Go value of type {_TYPE_META_STRUCT}"
        raise ConfigError.of(_INTERPRETING + problem)
    for key, value in tree.pairs if tree is not None else ():
        name = key.lower()
        if name not in found or value is None:
            continue
        if not isinstance(value, str):
            problem = f"json: cannot unmarshal {kind_of(value)} into Go struct field .{fields[name]} of type string"
            raise ConfigError.of(_INTERPRETING + problem)
        found[name] = value
    if found["apiversion"].count("/") > 1:
        raise ConfigError.of(f"unexpected GroupVersion string: {found['apiversion']}")
    version = found["apiversion"]
    return _Kind("" if version == "/" else version, found["kind"])


def _demand_complete(kind: _Kind, text: str) -> None:
    if not kind.kind:
        raise ConfigError.of(f"Object 'Kind' is missing in '{text}'")
    if not kind.api_version.rpartition("/")[2]:
        raise ConfigError.of(f"Object 'apiVersion' is missing in '{text}'")


def _decode(tree: Tree, kind: _Kind) -> tuple[dict[str, Any], list[str]]:
    if kind.api_version != API_VERSION or kind.kind not in REGISTERED:
        scheme = quote("pkg/scheduler/apis/config/scheme/scheme.go:29")
        version = quote(kind.api_version)
        raise ConfigError.of(f"no kind {quote(kind.kind)} is registered for version {version} in scheme {scheme}")
    return decode_strictly(tree, REGISTERED[kind.kind])


def _decode_arguments(given: Mapping[str, Any]) -> list[str]:
    """Decode every ``args`` of an in-tree plugin in its place, and return what only a strict reader minds."""
    strict_errors = []
    for i, profile in enumerate(given.get("profiles") or ()):
        for j, entry in enumerate(profile.get("pluginConfig") or ()):
            name = entry.get("name", "")
            if name not in ARGUMENTS:
                continue
            place = f"decoding .profiles[{i}].pluginConfig[{j}]: "
            try:
                entry["args"], errors = _decode_args_of(name, entry.get("args"))
            except ConfigError as error:
                raise error.within(place) from error
            if errors:
                inner = f"{_STRICT}decoding args for plugin {name}: {_STRICT}{', '.join(errors)}"
                strict_errors.append(place + inner)
    return strict_errors


def _decode_args_of(plugin: str, tree: Tree) -> tuple[DecodedArguments, list[str]]:
    wanted = f"{plugin}Args"
    try:
        kind = _interpret(tree)
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
