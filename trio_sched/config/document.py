"""From the text of a configuration file to its tree, version and kind.

Source: Kubernetes' strict codec: which decoder reads what, what each refuses, and in which order it reports it.
"""

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from trio_sched.config.errors import ConfigError, Problem
from trio_sched.documents.errors import DocumentError
from trio_sched.documents.json_reader import read_json
from trio_sched.documents.tree import Object, Tree, kind_of
from trio_sched.documents.yaml_reader import read_yaml
from trio_sched.go.text import quote, shortened

STRICT: Final = "strict decoding error: "
"""The prefix of strict errors (unknown and duplicate fields)."""

_TYPE_META_STRUCT: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_INTERPRETING: Final = "couldn't get version/kind; json parse error: "


@frozen
class DocumentKind:
    """The ``apiVersion`` and ``kind`` of an object."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        """The part of the version before the slash; empty if there is none."""
        return self.api_version.rpartition("/")[0]


class StrictError(ConfigError):
    """Strict errors (unknown and duplicate fields), listed in one text."""

    def __str__(self) -> str:
        return self.prefix + STRICT + ", ".join(map(str, self.problems))

    @classmethod
    def listing(cls, errors: Iterable[str]) -> "StrictError":
        """All *errors* in one."""
        return cls(Problem("", error) for error in errors)


def read_document(text: str) -> tuple[Tree, list[str]]:
    """The document in *text*, and the YAML library's error about duplicate keys.

    Raises:
        ConfigError: the text is malformed.
    """
    try:
        if text.lstrip(" \t\r\n\v\f").startswith("{"):
            return _read_json(text), []
        document = read_yaml(text)
    except DocumentError as error:
        raise _config_error(str(error), error) from error
    return document.tree, [document.duplicates_text] if document.duplicates_text else []


def _read_json(text: str) -> Tree:
    try:
        return read_json(text)
    except DocumentError as error:
        raise _config_error(_INTERPRETING + str(error), error) from error


def _config_error(text: str, error: DocumentError) -> ConfigError:
    """*text*, which counts lines as kube-scheduler does, with the line and column of *error*."""
    found = ConfigError.of(text)
    found.place = error.place
    return found


def interpret(tree: Tree) -> DocumentKind:
    """The version and kind of *tree*; here, unlike anywhere else, the case of keys does not matter.

    Raises:
        ConfigError: it is no object, or its version or kind is malformed.
    """
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
        raise ConfigError.of(f"unexpected GroupVersion string: {shortened(found['apiversion'])}")
    version = found["apiversion"]
    return DocumentKind("" if version == "/" else version, found["kind"])


def not_registered(kind: DocumentKind) -> ConfigError:
    """The error for an object whose version and kind are not registered."""
    scheme = quote("pkg/scheduler/apis/config/scheme/scheme.go:29")
    return ConfigError.of(
        f"no kind {quote(shortened(kind.kind))} is registered for version {quote(shortened(kind.api_version))} "
        f"in scheme {scheme}"
    )
