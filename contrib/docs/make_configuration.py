"""Writes docs/reference/configuration.md from the shape of the file: ``python -m contrib.docs.make_configuration``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from contrib.docs.pages import Page, table
from trio_sched.config.decode import Bool, Bytes, Duration, Float32, GoType, Integer, ListOf, MapOf, Raw, String, Struct
from trio_sched.config.dump import dump_configuration
from trio_sched.config.load import load_configuration
from trio_sched.config.plugin_arguments.table import ARGUMENT_STRUCTS
from trio_sched.config.wire_types import ALL_POINTS, API_VERSION, CONFIGURATION, CONFIGURATION_KIND, POINTS

HEADER: Final = f"""\
# Configuration

The fields of a configuration file (`--config`), and the arguments of the plugins of Kubernetes. It begins with

```yaml
apiVersion: {API_VERSION}
kind: {CONFIGURATION_KIND}
```

A field that does not exist is an error. `trio-sched check-config FILE` says everything that is wrong in a file;
`trio-sched --config=FILE --write-config-to=OUT` writes it with all defaults filled in. Files of former versions are
converted, see [how to keep an old configuration](../how_to/keep_an_old_configuration.md). The arguments of other
plugins are described by them.

This page is made from `trio_sched/config/wire_types.py` and the files of `plugin_arguments/` by `make docs`.
"""
CHECK: Final = """\
## check-config in a pipeline

`trio-sched check-config --output json FILE...` prints one object; its fields stay as they are:

```json
{"ok": false, "files": [{"file": "scheduler.yaml", "ok": false, "problems": [
  {"severity": "error", "path": "profiles[0].plugins.score.enabled[1].name", "line": 9,
   "message": "no installed distribution offers a plugin named 'NodeAffinty'", "suggestion": "NodeAffinity"}]}]}
```

`severity` is `error` or `warning`; `line` and `suggestion` are null where there is none. The
[exit code](exit_codes.md) is 1 if there is an error.

With `--context NAME` or `--kubeconfig FILE` the cluster is asked, too, and nothing is written there. What it does not
allow is an error; a kind of which it serves no version that can be read is a warning; each says what that costs and
what helps. Rights are those of the credentials, or with `--as USER` those of the scheduler's user, for instance
`system:serviceaccount:kube-system:trio-sched`. Files get one field more:

```json
{"cluster": {"version": "1.33", "kinds": [
  {"resource": "resourceclaims.resource.k8s.io", "state": "served", "version": "v1beta2", "cost": null, "mend": null}],
  "lacking": [{"resource": "pods/binding", "verbs": ["create"], "cost": "no pod is bound",
   "mend": "`trio-sched rbac` prints the roles that the scheduler needs"}]}}
```

`state` is `served`, `missing` or `forbidden`.
"""
_WORDS: Final[dict[type[Any], str]] = {
    Bool: "true or false",
    String: "text",
    Float32: "number",
    Bytes: "base64",
    Duration: "duration, like `15s`",
    Raw: "anything",
}


def text() -> str:
    """The whole page."""
    defaults = yaml.safe_load(dump_configuration(load_configuration(None)))
    arguments = {entry["name"]: entry["args"] for entry in defaults["profiles"][0]["pluginConfig"]}
    parts = [HEADER, "## Fields\n", _fields(CONFIGURATION, defaults)]
    points = ", ".join(f"`{point}`" for point in POINTS)
    newer = ", ".join(f"`{point}`" for point in ALL_POINTS if point not in POINTS)
    parts.append(f"`plugins.POINT` stands for each of {points}, and from 1.37 on {newer}; see [the hooks](hooks.md).\n")
    for plugin, struct in sorted(ARGUMENT_STRUCTS.items()):
        parts += [f"## {plugin}Args\n", _fields(struct, arguments.get(plugin, {}))]
    return "\n".join([*parts, CHECK])


def _fields(struct: Struct, defaults: Mapping[str, Any]) -> str:
    return table(("field", "type", "default"), _rows("", struct, defaults))


def _rows(path: str, type_: GoType, default: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(type_, Struct):
        fields = dict(type_.fields)
        for embedded, inner in type_.embedded.items():
            fields |= {} if embedded == "TypeMeta" else inner
        if fields.keys() == POINTS.keys():
            fields = {"POINT": fields["filter"]}
        for name, inner_type in fields.items():
            inner_default = default.get(name) if isinstance(default, dict) else None
            yield from _rows(f"{path}.{name}" if path else name, inner_type, inner_default)
    elif isinstance(type_, ListOf) and isinstance(type_.item, Struct):
        yield from _rows(f"{path}[]", type_.item, None)
    else:
        shown = "" if default in (None, "", {}, []) else f"`{_plain(default)}`"
        yield f"`{path}`", _type(type_), shown


def _plain(default: Any) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)


def _type(type_: GoType) -> str:
    if isinstance(type_, Integer):
        return f"whole number of {type_.bits} bits"
    if isinstance(type_, ListOf):
        return f"list: {_type(type_.item)}"
    if isinstance(type_, MapOf):
        return f"mapping of texts to: {_type(type_.value)}"
    return _WORDS.get(type(type_), type_.name)


PAGE: Final = Page("configuration.md", text)

if __name__ == "__main__":
    PAGE.write()
