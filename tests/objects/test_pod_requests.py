from typing import Any

import msgspec
import pytest

from trio_sched.objects.pod import ContainerPort, Pod
from trio_sched.objects.pod_requests import (
    HostPort,
    ResourceAmounts,
    ResourceOptions,
    has_same_resources,
    host_ports,
    is_extended,
    is_qualified_name,
    is_scalar,
    nano_limits,
    nano_requests,
    pod_resources,
    to_amounts,
)
from trio_sched.testing import container, pod

MIB = 1024 * 1024


def decoded(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    return msgspec.convert({"spec": spec, "status": status or {}}, Pod)


def requested(pod: Pod, **more: Any) -> ResourceAmounts:
    return to_amounts(nano_requests(pod, **more))


def test_containers_run_together_and_init_containers_before_them() -> None:
    both = pod(containers=[container(cpu="1"), container(cpu="500m")], init_containers=[container(cpu="1200m")])
    assert requested(both).cpu_milli == 1500
    heavy_start = pod(containers=[container(cpu="1")], init_containers=[container(cpu="3"), container(cpu="2")])
    assert requested(heavy_start).cpu_milli == 3000


def test_sidecars_count_beside_what_runs_after_them() -> None:
    mixed = pod(
        containers=[container(cpu="1")],
        init_containers=[container(cpu="2"), container(cpu="500m", sidecar=True), container(cpu="3")],
    )
    assert requested(mixed).cpu_milli == 3500
    sidecar_last = pod(
        containers=[container(cpu="1")], init_containers=[container(cpu="3"), container(cpu="1", sidecar=True)]
    )
    assert requested(sidecar_last).cpu_milli == 3000


def test_sums_are_exact_and_rounded_once() -> None:
    thirds = pod(containers=[container(cpu="100.4m", memory="0.4") for _ in range(5)])
    assert requested(thirds).cpu_milli == 502
    assert requested(thirds).memory_bytes == 2


def test_overhead_comes_on_top_of_everything() -> None:
    pod_level = decoded(
        {
            "containers": [{"resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}],
            "resources": {"requests": {"cpu": "4", "example.com/gpu": "8"}},
            "overhead": {"cpu": "250m"},
        }
    )
    assert requested(pod_level) == ResourceAmounts(4250, 0, 0, (("example.com/gpu", 1),))
    assert requested(pod_level, use_pod_level=False).cpu_milli == 1250
    assert requested(pod_level, options=ResourceOptions(pod_level=False)).cpu_milli == 1250


def test_pod_level_resources_without_a_supported_name_do_not_count() -> None:
    odd = decoded(
        {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "resources": {"requests": {"example.com/x": "1"}}}
    )
    assert requested(odd) == ResourceAmounts(cpu_milli=1000)


RESIZED: dict[str, Any] = {
    "containerStatuses": [
        {"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2", "memory": "5"}}
    ]
}


def test_a_resize_in_progress_holds_the_most_of_what_is_wanted_in_force_and_set_aside() -> None:
    resizing = decoded({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "9"}}}]}, RESIZED)
    assert requested(resizing).cpu_milli == 1000
    assert requested(resizing, use_status=True) == ResourceAmounts(cpu_milli=3000, memory_bytes=9)


def test_a_resize_that_cannot_happen_wants_nothing() -> None:
    status = {**RESIZED, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    infeasible = decoded(
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9", "memory": "9"}}}]}, status
    )
    assert requested(infeasible, use_status=True) == ResourceAmounts(cpu_milli=3000, memory_bytes=5)


def test_containers_that_are_resized_in_opposite_directions_hold_less_since_1_37() -> None:
    since_1_37 = ResourceOptions(resize_of_whole_pod=True)
    wanted = [("a", "1"), ("b", "3")]
    spec = {"containers": [{"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in wanted]}
    told = [("a", "3"), ("b", "1")]
    of_status = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
        for name, cpu in told
    ]
    resizing = decoded(spec, {"containerStatuses": of_status})
    assert requested(resizing, use_status=True).cpu_milli == 6000
    assert requested(resizing, use_status=True, options=since_1_37).cpu_milli == 4000
    assert requested(resizing, options=since_1_37).cpu_milli == 4000
    smaller = {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]}
    pending = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    larger = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "9"}}}]}
    assert requested(decoded(larger, smaller), use_status=True, options=since_1_37).cpu_milli == 9000
    assert requested(decoded(larger, smaller | pending), use_status=True, options=since_1_37).cpu_milli == 2000


def test_the_status_of_init_containers_counts_since_1_37() -> None:
    spec = {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}], "containers": []}
    told = {"initContainerStatuses": [{"name": "i", "resources": {"requests": {"cpu": "2"}}}]}
    resizing = decoded(spec, told)
    assert requested(resizing, use_status=True).cpu_milli == 1000
    assert requested(resizing, use_status=True, options=ResourceOptions(resize_of_whole_pod=True)).cpu_milli == 2000


def test_versions_that_are_said_to_take_the_same_do() -> None:
    one = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9", "memory": "9"}}}]}
    specs = [one, {**one, "nodeName": "n"}, {**one, "overhead": {"cpu": "1"}}, {"containers": []}]
    pending = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
    running = {"phase": "Running", "containerStatuses": [{"name": "c"}]}
    whole = {"resources": {"requests": {"cpu": "7"}}}
    statuses = [{}, running, RESIZED, pending, {**RESIZED, **pending}, whole, {**whole, **pending}]
    versions = [decoded(spec, status) for spec in specs for status in statuses]
    for old in versions:
        for new in versions:
            if has_same_resources(old, new):
                assert pod_resources(old) == pod_resources(new)
    assert has_same_resources(decoded(specs[0], {}), decoded(specs[1], running))
    assert has_same_resources(decoded(one, RESIZED), decoded(one, {**RESIZED, "phase": "Running"}))
    assert not has_same_resources(decoded(one, running), decoded(one, RESIZED))
    assert not has_same_resources(decoded(one, RESIZED), decoded(one, {**RESIZED, **pending}))


def test_a_pod_level_resize_counts_where_its_gate_is_on() -> None:
    resizing = decoded(
        {"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {}}
    )
    assert requested(resizing, use_status=True).cpu_milli == 2000
    assert requested(resizing, use_status=True, options=ResourceOptions(pod_level_resize=False)).cpu_milli == 1000


def test_what_devices_take_of_the_node_counts_where_its_gate_is_on() -> None:
    claims = [
        {"resourceClaimName": "a", "resources": {"cpu": "2", "memory": "1Gi"}},
        {"resourceClaimName": "b", "resources": {"cpu": "500m"}},
    ]
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "3"}}}],
        "overhead": {"cpu": "1"},
    }
    with_devices = decoded(spec, {"nodeAllocatableResourceClaimStatuses": claims})
    on = ResourceOptions(device_claims=True)
    assert requested(with_devices).cpu_milli == 4000
    assert requested(with_devices, options=on) == ResourceAmounts(cpu_milli=6500, memory_bytes=1024 * MIB)
    leveled = decoded(
        {**spec, "resources": {"requests": {"cpu": "8"}}}, {"nodeAllocatableResourceClaimStatuses": claims}
    )
    assert requested(leveled, options=on) == ResourceAmounts(cpu_milli=9000, memory_bytes=1024 * MIB)
    plain = decoded({"containers": [{}]}, {"nodeAllocatableResourceClaimStatuses": claims})
    assert pod_resources(plain).requested.cpu_milli == 0
    found = pod_resources(plain, on)
    assert (found.requested.cpu_milli, found.nonzero_cpu_milli) == (2500, 2600)


def test_what_devices_are_of_the_node_and_take_besides_counts_for_each_container_that_uses_them() -> None:
    overhead = [{"name": "cpu", "perPod": "1", "perContainer": "250m"}, {"name": "memory", "perContainer": "1Gi"}]
    claims = [
        {"resourceClaimName": "a", "containers": ["x", "y"], "overhead": overhead},
        {"resourceClaimName": "b", "mapping": [{"name": "cpu", "quantity": "2"}], "overhead": overhead},
    ]
    found = decoded({"containers": [{}]}, {"nodeAllocatableResourceClaimStatuses": claims})
    on = ResourceOptions(device_claims=True)
    assert requested(found, options=on) == ResourceAmounts(cpu_milli=4500, memory_bytes=2048 * MIB)
    assert requested(found) == ResourceAmounts()


def test_scores_count_containers_that_ask_for_nothing_with_defaults() -> None:
    resources = pod_resources(pod(containers=[container(), container(cpu="0", memory="1Mi")]))
    assert resources.requested == ResourceAmounts(memory_bytes=MIB)
    assert (resources.nonzero_cpu_milli, resources.nonzero_memory_bytes) == (100, 201 * MIB)


def test_what_a_pod_asks_as_a_whole_is_not_topped_up_by_container() -> None:
    whole = decoded({"containers": [{}, {}], "resources": {"requests": {"cpu": "1"}}})
    resources = pod_resources(whole)
    assert (resources.nonzero_cpu_milli, resources.nonzero_memory_bytes) == (1000, 400 * MIB)


def test_host_ports_are_those_of_what_keeps_running() -> None:
    ports = pod(
        containers=[
            container(host_ports=[80, ContainerPort(53, 5353, host_ip="10.0.0.1", protocol="UDP"), ContainerPort(9)])
        ],
        init_containers=[container(host_ports=[1]), container(host_ports=[2], sidecar=True)],
    )
    assert host_ports(ports) == (
        HostPort("0.0.0.0", "TCP", 2),
        HostPort("0.0.0.0", "TCP", 80),
        HostPort("10.0.0.1", "UDP", 5353),
    )


@pytest.mark.parametrize(
    ("name", "scalar", "extended"),
    [
        ("cpu", False, False),
        ("example.com/gpu", True, True),
        ("hugepages-2Mi", True, False),
        ("attachable-volumes-csi-x", True, False),
        ("kubernetes.io/thing", True, False),
        ("deviceclass.resource.kubernetes.io/gpu", True, False),
        ("requests.example.com/gpu", False, False),
        ("whatever", False, False),
        ("Example.com/gpu", False, False),
        ("example.com/", False, False),
        ("-.com/gpu", False, False),
    ],
)
def test_which_other_resources_nodes_are_counted_by(name: str, scalar: bool, extended: bool) -> None:
    assert is_scalar(name) is scalar
    assert is_extended(name) is extended


def test_amounts_are_found_by_name_and_unknown_ones_are_dropped() -> None:
    amounts = requested(
        pod(cpu="1", memory="2", requests={"ephemeral-storage": "3", "b.c/d": "4", "a.b/c": 0, "x": 9, "pods": 7})
    )
    assert [amounts.amount(n) for n in ("cpu", "memory", "ephemeral-storage", "b.c/d", "nope")] == [1000, 2, 3, 4, 0]
    assert amounts.scalars == (("a.b/c", 0), ("b.c/d", 4))


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("app", True),
        ("app.kubernetes.io/name", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("/name", False),
        ("pre_fix.io/name", False),
        ("a" * 254 + "/name", False),
        ("-name", False),
        ("nam é", False),
    ],
)
def test_qualified_names(name: str, fine: bool) -> None:
    assert is_qualified_name(name) is fine


def test_limits_are_added_up_as_requests_are() -> None:
    spec = {
        "containers": [
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
            {"resources": {"requests": {"cpu": "5"}}},
            {"resources": {"limits": {"cpu": "500m"}}},
        ],
        "initContainers": [
            {"resources": {"limits": {"cpu": "250m"}}, "restartPolicy": "Always"},
            {"resources": {"limits": {"cpu": "3", "example.com/gpu": "2"}}},
        ],
        "overhead": {"cpu": "100m", "ephemeral-storage": "1Gi"},
    }
    found = to_amounts(nano_limits(decoded(spec)))
    assert found.cpu_milli == 3350  # the second init container beside the sidecar, and the overhead
    assert found.memory_bytes == 1024 * MIB
    assert found.ephemeral_storage_bytes == 0  # the overhead of what is not limited is no limit
    assert found.amount("example.com/gpu") == 2


def test_limits_of_the_pod_replace_those_of_its_containers() -> None:
    container_limits = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    pod_limits = {"cpu": "2", "ephemeral-storage": "5Gi"}
    spec = {"containers": [{"resources": {"limits": container_limits}}], "resources": {"limits": pod_limits}}
    found = to_amounts(nano_limits(decoded(spec)))
    assert (found.cpu_milli, found.memory_bytes) == (2000, 1024 * MIB)
    assert found.ephemeral_storage_bytes == 1024 * MIB  # not a resource that a pod as a whole can limit
