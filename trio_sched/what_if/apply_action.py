"""Apply manifests to the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import define

from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.what_if.asking import Action
from trio_sched.what_if.cluster_changes import ChangeRefused, ClusterChanges


@define(eq=False, kw_only=True)
class ApplyManifests(Action):
    """Create and change objects, as ``kubectl apply --server-side`` does."""

    manifests: Sequence[Manifest]
    files: Sequence[Path] = ()

    async def change(self, changes: ClusterChanges) -> None:
        """Apply them, namespaces and definitions first.

        Raises:
            ChangeRefused: one of them is refused.
        """
        in_order = sorted(self.manifests, key=lambda one: one.fields["kind"] not in _FIRST)
        for manifest in in_order:
            fields = manifest.fields
            resource = changes.running.server.state.types.of_kind(fields["apiVersion"], fields["kind"])
            if resource is None:
                raise ChangeRefused(str(manifest.problem("is of a kind that is not served here", "kind")))
            if not fields["metadata"].get("name"):
                text = "is needed to apply an object; one with a generateName can only be created"
                raise ChangeRefused(str(manifest.problem(text, "metadata.name")))
            try:
                await changes.apply(_path(resource, fields["metadata"]), _applied(fields))
            except ChangeRefused as refused:
                raise ChangeRefused(str(manifest.problem(str(refused)))) from refused


_FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass")


def _path(resource: ResourceType, metadata: dict[str, object]) -> str:
    group = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    namespace = f"/namespaces/{metadata.get('namespace') or 'default'}" if resource.namespaced else ""
    return f"{group}{namespace}/{resource.plural}/{metadata['name']}"


def _applied(fields: dict[str, object]) -> dict[str, object]:
    """*fields* without what a server writes and refuses to be told."""
    metadata = fields["metadata"]
    assert isinstance(metadata, dict)
    written = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
    kept = {name: value for name, value in metadata.items() if name not in written}
    return {**{name: value for name, value in fields.items() if name != "status"}, "metadata": kept}
