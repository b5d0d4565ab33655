"""DefaultBinder: binds pods through the API server."""

from typing import ClassVar

from trio_sched.plugin_api import CycleState, Handle, Pod, Status, hookimpl


class DefaultBinder:
    """Posts the pod's Binding."""

    name: ClassVar[str] = "DefaultBinder"

    def __init__(self, args: None, handle: Handle) -> None:
        self._handle = handle

    @hookimpl
    async def bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Bind the pod; never Skip."""
        return await self._handle.bind(pod, node_name)
