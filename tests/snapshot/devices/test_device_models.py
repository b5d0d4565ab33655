from trio_sched.snapshot.devices.device_models import DeviceModels
from trio_sched.snapshot.devices.device_table import DeviceTable
from trio_sched.testing import device, resource_slice

DRIVER = "gpu.example.com"


def test_devices_that_differ_in_their_names_only_share_a_model() -> None:
    a100 = [device(f"gpu-{n}", attributes={"model": "a100"}, capacity={"memory": "40Gi"}) for n in range(2)]
    other = device("gpu-2", attributes={"model": "a100"}, capacity={"memory": "80Gi"})
    models = DeviceModels()
    _devices, (first, second, third) = models.of(DRIVER, [*a100, other])
    assert first is second
    assert third is not first
    assert first.capacity == {"memory": 40 * 2**30 * 10**9}
    assert models.of("other.example.com", a100)[1][0] is not first  # another driver means something else by it
    assert models.of(DRIVER, [other])[1] == (third,)


def test_equal_lists_of_devices_are_kept_once() -> None:
    table = DeviceTable()
    for name in ("n1", "n2"):
        table.put(resource_slice(name, device("gpu-0"), device("gpu-1")))
    (one,), (two,) = (list(table.slices_for(name)) for name in ("n1", "n2"))
    assert one.slice.spec.devices is two.slice.spec.devices
    assert [d.model for d in one.devices] == [d.model for d in two.devices]
    assert [str(d.id) for d in two.devices] == [f"{DRIVER}/n2/gpu-0", f"{DRIVER}/n2/gpu-1"]
