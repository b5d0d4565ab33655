"""YAML as Kubernetes reads it: with the types of JSON, so that dates stay text."""

from typing import Any

import yaml


class ManifestLoader(yaml.CSafeLoader):
    """A safe loader to which ``2026-01-01T00:00:00Z`` is a string, as it is in JSON."""


def _without_timestamps(resolvers: dict[str, list[tuple[str, Any]]]) -> dict[str, list[tuple[str, Any]]]:
    unwanted = "tag:yaml.org,2002:timestamp"
    return {first: [(tag, regexp) for tag, regexp in known if tag != unwanted] for first, known in resolvers.items()}


ManifestLoader.yaml_implicit_resolvers = _without_timestamps(yaml.CSafeLoader.yaml_implicit_resolvers)
