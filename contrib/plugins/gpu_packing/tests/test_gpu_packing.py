from typing import Any

import trio
from trio_sched_gpu_packing import GpuPacking

from trio_sched.plugin_api import Node, Pod
from trio_sched.testing import check_conformance, node, pod, schedule, virtual_cluster

RESOURCE = "example.com/gpu-milli"
ANNOTATION = "trio-sched.dev/gpu-index"
ARGS: dict[str, Any] = {"resource": RESOURCE, "unitsPerGpu": 1000}
CONFIG = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{{name: GpuPacking}}]
      score:
        disabled: [{{name: "*"}}]
        enabled: [{{name: GpuPacking}}]
    pluginConfig:
      - name: GpuPacking
        args: {{resource: {RESOURCE}, unitsPerGpu: 1000}}
"""


def gpu_node(name: str, gpus: int, cpu: str = "32", **more: Any) -> Node:
    return node(name, cpu=cpu, memory="256Gi", pods=100, allocatable={RESOURCE: 1000 * gpus}, **more)


def gpu_pod(name: str, milli: int, cpu: str = "1", **more: Any) -> Pod:
    return pod(name, cpu=cpu, requests={RESOURCE: milli}, **more)


def test_it_keeps_the_contract() -> None:
    pods = [gpu_pod("share", 400), gpu_pod("half", 500), gpu_pod("whole", 1000), gpu_pod("two", 2000), pod("cpu")]
    nodes = [gpu_node("a", 2), gpu_node("b", 1), gpu_node("c", 4), node("none")]
    running = [gpu_pod("r", 600, node_name="a", annotations={ANNOTATION: "1"}), gpu_pod("s", 700, node_name="b")]
    check_conformance(GpuPacking, args=ARGS, pods=pods, nodes=nodes, running=running)
    check_conformance(GpuPacking)


def test_a_share_needs_room_on_one_gpu() -> None:
    running = [
        gpu_pod("r", 600, node_name="a", annotations={ANNOTATION: "0"}),
        gpu_pod("s", 600, node_name="a", annotations={ANNOTATION: "1"}),
    ]
    outcome = schedule(
        gpu_pod("p", 500), on=[gpu_node("a", 2)], pods=running, plugins=[GpuPacking], args={"GpuPacking": ARGS}
    )
    assert outcome.reasons == {"a": ["node(s) had no GPU with as much left as the pod requests"]}
    assert (
        schedule(
            gpu_pod("p", 400), on=[gpu_node("a", 2)], pods=running, plugins=[GpuPacking], args={"GpuPacking": ARGS}
        ).node_name
        == "a"
    )


def test_a_request_between_one_and_two_gpus_is_refused() -> None:
    outcome = schedule(gpu_pod("p", 1500), on=[gpu_node("a", 2)], plugins=[GpuPacking], args={"GpuPacking": ARGS})
    assert "which is more than one GPU of 1000 and no whole number of them" in outcome.message


async def test_shares_are_packed_and_their_gpus_written_down() -> None:
    async with virtual_cluster(
        nodes=[gpu_node("a", 2), gpu_node("b", 2)], config=CONFIG, plugins=[GpuPacking]
    ) as cluster:
        for number, milli in enumerate((600, 400, 600, 400, 1000, 300)):
            await cluster.create(gpu_pod(f"p{number}", milli))
            await trio.sleep(1)
        await cluster.settle()
        placed = {(p.node_name, (p.metadata.annotations or {})[ANNOTATION]) for p in cluster.pods()}
        per_gpu = [(p.node_name, (p.metadata.annotations or {})[ANNOTATION]) for p in cluster.pods()]
        first = cluster.pod("p0").node_name
        assert {place for place in placed if place[0] == first} == {(first, "0"), (first, "1")}
        assert sorted(per_gpu.count(place) for place in placed) == [1, 1, 2, 2]


async def test_no_gpu_is_given_more_than_it_has_while_pods_come_and_go() -> None:
    """Not even by another process that knows only the annotations."""
    sizes = [700, 300, 500, 500, 1000, 2000, 120, 880, 300, 650]
    async with virtual_cluster(
        nodes=[gpu_node(f"n{i}", gpus) for i, gpus in enumerate((1, 2, 4))],
        config=CONFIG,
        plugins=[GpuPacking],
        bind_latency_seconds=0.3,
    ) as cluster:
        for number in range(40):
            await cluster.create(gpu_pod(f"p{number}", sizes[number % len(sizes)], cpu="500m"))
            if number == 20:
                await cluster.stop_scheduler(drain_seconds=0)
                await cluster.start_scheduler()
            if number % 3 == 2 and cluster.pod(f"p{number - 2}").node_name:
                await cluster.delete(cluster.pod(f"p{number - 2}"), grace_seconds=0)
            await trio.sleep(0.5)
            used: dict[tuple[str, str], int] = {}
            for one in cluster.pods():
                if one.node_name:
                    milli = sizes[int(one.name[1:]) % len(sizes)]
                    for index in (one.metadata.annotations or {})[ANNOTATION].split(","):
                        place = one.node_name, index
                        used[place] = used.get(place, 0) + min(milli, 1000)
            assert max(used.values(), default=0) <= 1000, used


async def test_the_mix_of_pods_is_learnt_and_followed() -> None:
    """Where pods need many cores, a GPU beside few idle ones is worth little, so small pods go there."""
    nodes = [gpu_node("many-cores", 4, cpu="64"), gpu_node("few-cores", 4, cpu="12")]
    async with virtual_cluster(nodes=nodes, config=CONFIG, plugins=[GpuPacking]) as cluster:
        await cluster.create(gpu_pod("large", 1000, cpu="11"))
        await trio.sleep(70)
        large = cluster.pod("large").node_name
        for number in range(2):
            await cluster.create(gpu_pod(f"small-{number}", 1000, cpu="500m"))
            await trio.sleep(1)
        await cluster.settle()
        assert {cluster.pod(f"small-{number}").node_name for number in range(2)} == {"few-cores"}
        assert large in ("many-cores", "few-cores")


async def test_whole_gpus_need_no_annotation() -> None:
    config = CONFIG.replace(f"{{resource: {RESOURCE}, unitsPerGpu: 1000}}", "{resource: nvidia.com/gpu}")
    nodes = [node(name, cpu="32", allocatable={"nvidia.com/gpu": 2}) for name in ("a", "b")]
    async with virtual_cluster(nodes=nodes, config=config, plugins=[GpuPacking]) as cluster:
        for number in range(2):
            await cluster.create(pod(f"p{number}", cpu="1", requests={"nvidia.com/gpu": 1}))
        await cluster.settle()
        assert cluster.pod("p0").node_name == cluster.pod("p1").node_name != ""
        assert not cluster.pod("p0").metadata.annotations
