"""Create copies of a pod, which may preempt others."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define

from trio_sched.simulation.units import plural
from trio_sched.simulator import populate
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import copied
from trio_sched.what_if.asking import Action
from trio_sched.what_if.cluster_changes import ClusterChanges


@define(eq=False, kw_only=True)
class CreateCopies(Action):
    """Create so many pods like one."""

    template: Manifest
    count: int

    async def change(self, changes: ClusterChanges) -> None:
        """Create them.

        Raises:
            ManifestError: they are refused.
        """
        name = self.template.fields["metadata"]["name"]
        made = []
        for number in range(1, self.count + 1):
            fields = copied(self.template.fields)
            fields["metadata"] |= {"name": f"{name}-what-if-{number}", "generateName": f"{name}-what-if-"}
            made.append(Manifest(fields, self.template.source, self.template.document, self.template.items))
        populate(changes.running.server, made)

    def problems(self) -> Iterator[str]:
        """What has no node."""
        placed = sum(bool(one.node) for one in self.effects if not one.existed)
        if placed < self.count:
            yield f"{plural(self.count - placed, 'copy')} of {self.count} would be pending"
