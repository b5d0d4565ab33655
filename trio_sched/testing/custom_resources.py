"""Definitions of custom resources, for tests."""

from __future__ import annotations

from typing import Any

from trio_sched.plugin_api.custom_resources import CustomResource


def custom_resource_definition(resource: CustomResource[Any], *, has_status: bool = True) -> dict[str, Any]:
    """The CustomResourceDefinition of *resource* as a manifest; it allows any fields.

    Args:
        resource: as a plugin declares it.
        has_status: whether its status is a subresource, which only requests for it can change.
    """
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if has_status else {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "versions": [version],
        },
    }
