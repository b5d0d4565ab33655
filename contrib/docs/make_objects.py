"""Writes docs/reference/objects.md from the classes of objects: ``python -m contrib.docs.make_objects``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Any, Final, get_args, get_type_hints

from msgspec import Struct

from contrib.docs.api_pages import ApiPage, Group
from trio_sched import plugin_api

HEADER: Final = """\
# Objects

Kubernetes objects as plugins see them: frozen structs with the fields that a scheduler reads, in snake case; their
types are below, and they mean what they do in Kubernetes. Fields that a scheduler does not read are not there. Kinds
that are not here are [declared](handle.md#customresource).

```python
from trio_sched.plugin_api import Pod


def wants_much(pod: Pod) -> bool:
    first, *_ = pod.spec.containers or ()
    return pod.priority > 1000 or (first.resources is not None and "nvidia.com/gpu" in (first.resources.limits or {}))
```

- A field that is missing in the object has an empty value, None for lists and mappings. Properties such as `pod.labels`
  never are None.
- Never change one, nor what is in it. [`replace_fields`](#replace_fields) makes a changed copy.
- Quantities are texts or numbers, as they are written. [`pod_resources`](#pod_resources) has the sums that a scheduler
  counts with, [`parse_nano`](#parse_nano) reads one.
- Times are texts; [`parse_time`](#parse_time) makes seconds since 1970 of them.

What has no public name is reached as an attribute of what has one. The rest is imported from `trio_sched.plugin_api`.

This page is made from the code: change `trio_sched/objects/` and run `make docs`.
"""
_TITLES: Final[Mapping[str, str]] = {
    "pod": "Pods",
    "node": "Nodes",
    "metadata": "Metadata",
    "affinity": "Affinity",
    "selector": "Selectors",
    "taint": "Taints and tolerations",
    "volume": "Volumes of pods",
    "persistent_volume": "Volumes and claims",
    "storage": "Storage classes and drivers",
    "namespace": "Namespaces",
    "workload": "Workloads and services",
    "config_map": "ConfigMaps",
    "pod_group": "Pod groups",
    "composite_pod_group": "Composite pod groups",
    "resource_claim": "Resource claims",
    "resource_slice": "Resource slices",
    "device_class": "Device classes",
    "disruption_budget": "Disruption budgets",
}
_FUNCTIONS: Final = (
    Group(
        "Requests and amounts",
        (
            "pod_resources",
            "ResourceAmounts",
            "ResourceOptions",
            "node_amounts",
            "nano_requests",
            "nano_limits",
            "claimed_amounts",
            "to_amounts",
            "is_extended",
            "HostPort",
            "host_ports",
            "DEFAULT_CPU_MILLI",
            "DEFAULT_MEMORY_BYTES",
        ),
    ),
    Group("Quantities", ("Quantity", "parse_nano", "QuantityStyle", "format_nano", "style_of")),
    Group("Times and copies", ("parse_time", "format_seconds", "replace_fields", "to_builtins", "encoded")),
)


def _structs() -> dict[str, dict[str, None]]:
    """The names of all objects and parts of objects that plugins can reach, by module."""
    found: dict[str, dict[str, None]] = {}
    seen: set[type[Any]] = set()
    waiting = [one for one in vars(plugin_api).values() if _is_struct(one)]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += [part for hint in get_type_hints(one).values() for part in _parts(hint)]
    for one in seen:
        found.setdefault(one.__module__, {})[one.__name__] = None
    return found


def _is_struct(one: object) -> bool:
    return inspect.isclass(one) and issubclass(one, Struct) and one.__module__.startswith("trio_sched.objects.")


def _parts(hint: Any) -> Iterator[type[Any]]:
    if _is_struct(hint):
        yield hint
    elif isinstance(hint, UnionType) or get_args(hint):
        for part in get_args(hint):
            yield from _parts(part)


@cache
def _groups() -> tuple[Group, ...]:
    groups = []
    for module, names in _structs().items():
        title = _TITLES.get(module.rpartition(".")[2])
        if title is None:
            continue  # in one of the groups with functions
        source = inspect.getsource(import_module(module))
        public = [name for name in names if name in plugin_api.__all__]
        inner = [name for name in names if name not in plugin_api.__all__]
        ordered = tuple(sorted(public, key=lambda name: _order(source, name)))
        ordered += tuple(sorted(inner, key=lambda name: _order(source, name)))
        groups.append(Group(title, ordered, module=module, with_values=False))
    titles = list(_TITLES.values())
    return (*sorted(groups, key=lambda group: titles.index(group.title)), *_FUNCTIONS)


def _order(source: str, name: str) -> tuple[bool, int]:
    """What is the whole object first, then as in the source."""
    return name not in ("Pod", "Node"), source.index(f"class {name}(")


API_PAGE: Final = ApiPage("objects.md", HEADER, _groups())

if __name__ == "__main__":
    API_PAGE.page.write()
