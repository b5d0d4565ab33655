from attrs import define
from stored_objects import Store
from trio import Nursery

from trio_sched.daemon.assembly import Assembly
from trio_sched.objects.changes import Change, Changes
from trio_sched.objects.pod import Pod
from trio_sched.testing import node


@define(eq=False)
class ReportingAssembly:
    """An assembly with one node, whose events and conditions are written to an API server."""

    assembly: Assembly
    store: Store

    async def start(self, nursery: Nursery) -> None:
        """Add the node ``n``, and run the tasks that write."""
        self.assembly.scheduler.cache.add_node(node("n"))
        await nursery.start(self.assembly.recorder.run)
        nursery.start_soon(self.assembly.status_patch_pool.run)

    def show(self, type: str, old: Pod | None, new: Pod | None) -> None:
        """Let the watch of pods deliver a change."""
        self.assembly.delivery.pods_changed(Changes([Change(type, old, new)], "1"))

    async def reported(self) -> None:
        """Wait until events and conditions have been written."""
        await self.assembly.recorder.pool.drained()
        await self.assembly.status_patch_pool.drained()
