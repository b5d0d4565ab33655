"""All simulated controllers of a cluster, run together."""

import trio
from attrs import define, field

from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.controllers.claims import ClaimController
from trio_sched.simulator.controllers.device_eviction import DeviceTaintEviction
from trio_sched.simulator.controllers.devices import DeviceDrivers
from trio_sched.simulator.controllers.pod_groups import PodGroupController
from trio_sched.simulator.controllers.volumes import VolumeController, VolumePace


@define(eq=False)
class Controllers:
    """The controllers of one cluster.

    Args:
        server: the cluster.
        volume_pace: how fast volumes are bound and provisioned; None: there is no volume controller.
    """

    server: ApiServer
    volume_pace: VolumePace | None = field(factory=VolumePace)
    _all: list[VolumeController | ClaimController | DeviceDrivers | DeviceTaintEviction | PodGroupController] = field(
        init=False
    )

    def __attrs_post_init__(self) -> None:
        server = self.server
        self._all = [
            DeviceDrivers(server),
            ClaimController(server),
            DeviceTaintEviction(server),
            PodGroupController(server),
        ]
        if self.volume_pace is not None:
            self._all.append(VolumeController(server, self.volume_pace))

    @property
    def is_busy(self) -> bool:
        """Whether any of them has something to do, now or later."""
        return any(one.is_busy for one in self._all)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run them; never returns."""
        async with trio.open_nursery() as nursery:
            for one in self._all:
                await nursery.start(one.run)
            task_status.started()
