"""``v1.ResourceSpec``: the resources, with weights, in the arguments of plugins that score by resources."""

from collections.abc import Sequence
from typing import Any, Final

from trio_sched.config.decode import Given, Integer, ListOf, String, Struct
from trio_sched.config.omit_empty import omit_empty
from trio_sched.plugin_api.arguments import ResourceSpec

RESOURCES: Final = ListOf(Struct("v1.ResourceSpec", {"name": String(), "weight": Integer(64)}))
"""A list of resources on the wire."""


def convert(given: Sequence[Given] | None) -> tuple[ResourceSpec, ...]:
    """The resources that are *given*; a weight of 0 counts as not given, and is 1 then."""
    return tuple(ResourceSpec(name=spec.get("name", ""), weight=spec.get("weight", 0) or 1) for spec in given or ())


def dump(resources: Sequence[ResourceSpec]) -> list[dict[str, Any]]:
    """The resources as a completed file shows them."""
    return [{"name": spec.name, **omit_empty(weight=spec.weight)} for spec in resources]
