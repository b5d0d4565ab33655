from trio_sched.plugin_api import failure
from trio_sched.testing import FakeHandle, make_plugin, pod


async def test_it_binds_whatever_pod_it_is_given() -> None:
    handle = FakeHandle()
    assert await make_plugin("DefaultBinder", handle=handle).bind(pod("p"), "n", None) is None
    assert handle.bound == [(pod("p"), "n")]


async def test_its_status_is_that_of_the_api_server() -> None:
    refused = failure("conflict")
    assert (
        await make_plugin("DefaultBinder", handle=FakeHandle(bind_status=refused)).bind(pod("p"), "n", None) is refused
    )
