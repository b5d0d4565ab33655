"""The plugin: learns the mix of pods, and chooses nodes, and GPUs that are shared, so that idle ones stay usable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import ClassVar, Final

import numpy as np
import trio
import trio.lowlevel
from attrs import evolve, field, frozen, validators
from numpy.typing import NDArray

from trio_sched.plugin_api import (
    SKIP,
    Action,
    CycleState,
    EventRegistration,
    Handle,
    Input,
    Int64Array,
    NodeColumns,
    Pod,
    PreFlight,
    Resource,
    Status,
    Verdicts,
    failure,
    hookimpl,
    int_scores,
    on,
    unresolvable,
    unschedulable,
)
from trio_sched_gpu_packing.demand import MAX_GPUS, MILLI, Demand, Shape, UnusableRequest, shape_of
from trio_sched_gpu_packing.fragmentation import NodeStates, Weights, fragmentation, share_losses
from trio_sched_gpu_packing.node_gpus import NodeGpus, choose, parse_indexes

_CPU_SCALE: Final = 128_000.0
_GPU_SCALE: Final = 8_000.0
_RESOLUTION: Final = 1_000
_NOWHERE: Final = 1e9
"""What a pod that fits on no GPU of a node costs there."""
_NO_ROOM: Final = unschedulable("node(s) had no GPU with as much left as the pod requests")
_CHUNK: Final = 500
"""How many pods are looked at before other tasks run."""
_GROWTH: Final = 0.1
"""How many pods more make it worth looking up the mix, as a share of them. The first pods are the most important:
300 that were placed by best fit cost one percent of a full cluster's GPUs."""
_DRIFT: Final = 0.01
"""How different the mix of pods must be from the one in use to replace it."""


@frozen
class GpuPackingArgs:
    """What ``pluginConfig`` says."""

    resource: str = field(default="nvidia.com/gpu", validator=validators.min_len(1))
    """The extended resource of the GPUs."""
    units_per_gpu: int = field(default=1, validator=[validators.ge(1), validators.le(1_000_000)])
    """How many units of it are one GPU: 1 for whole GPUs, 1000 or 100 for resources that can be shared."""
    model_label: str = "nvidia.com/gpu.product"
    """The node label with the model; pods that select a value of it can use no other model."""
    index_annotation: str = field(default="trio-sched.dev/gpu-index", validator=validators.min_len(1))
    """Where the chosen GPUs of a pod are written, with units_per_gpu above 1."""
    mix_seconds: float = field(default=60.0, validator=validators.ge(1.0))
    """How often it is looked up which pods there are."""


class GpuPacking:
    """Scores nodes by how usable their idle GPUs stay; see `fragmentation`."""

    name: ClassVar[str] = "GpuPacking"
    Args: ClassVar[type[GpuPackingArgs]] = GpuPackingArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})
    weights: ClassVar[Weights] = Weights()
    writes: ClassVar[dict[str, tuple[str, ...]]] = {"Pod": ("patch",)}

    def __init__(self, args: GpuPackingArgs, handle: Handle) -> None:
        self._args, self._handle = args, handle
        self._demand = Demand()
        self._has_grown = trio.Event()
        self._signed, self._signed_enough = 0, 1
        """Pods that were signed since the mix was looked up, and how many of them are enough to do so again."""
        self._usable: dict[str, NDArray[np.bool_]] = {}
        self._chosen: dict[str, tuple[str, str, tuple[int, ...]]] = {}
        """UID → namespace, name and GPUs of pods whose annotation may not have been seen yet."""
        self._prune_above = 1_000
        self._node_gpus = NodeGpus(self._gpus_of, self._lenient_shape, self._index_of)

    # --- the mix of pods ----------------------------------------------------------------------------------------------

    @hookimpl
    async def run(self) -> None:
        """Look up which pods there are, every now and then and when there may be many more."""
        while True:
            count = await self._learn()
            self._signed, self._signed_enough = 0, max(1, int(count * _GROWTH))
            self._has_grown = trio.Event()
            with trio.move_on_after(self._args.mix_seconds):
                await self._has_grown.wait()

    async def _learn(self) -> int:
        """Replace the mix if it has changed; returns how many pods with GPUs there are."""
        counts: Counter[Shape] = Counter()
        for number, pod in enumerate(list(self._handle.objects("Pod"))):
            shape = self._lenient_shape(pod)
            if shape.gpus:
                counts[shape] += 1
            if number % _CHUNK == _CHUNK - 1:
                await trio.lowlevel.checkpoint()
        demand = Demand.of(counts)
        if demand.shapes and demand.distance(self._demand) > _DRIFT:
            self._demand = demand
            self._usable.clear()
            self._handle.invalidate()
        return counts.total()

    # --- finding nodes ------------------------------------------------------------------------------------------------

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """Its shape is all that is looked at."""
        self._signed += 1
        if self._signed == self._signed_enough:
            self._has_grown.set()
        try:
            return self._shape(pod)
        except UnusableRequest as problem:
            return str(problem)

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip the filter unless it is a share: NodeResourcesFit looks at whole GPUs, but not where they are."""
        try:
            shape = self._shape(pod)
        except UnusableRequest as problem:
            return unresolvable(str(problem))
        return None if shape.gpus and self._args.units_per_gpu > 1 else SKIP

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Each GPU must have enough left by itself."""
        shape = self._shape(pod)
        idle = self._node_gpus.idle(nodes, self._args.resource)
        passes: NDArray[np.bool_] = np.count_nonzero(idle >= shape.milli, axis=1) >= shape.gpus
        return Verdicts.where(passes, otherwise=_NO_ROOM)

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """Less by how much fragmentation the pod would cause; raw, in millionths of a GPU."""
        shape, before = self._lenient_shape(pod), self._states(nodes)
        lost_before = fragmentation(self._demand, before, self.weights)
        after = evolve(before, cpu_milli=before.cpu_milli - shape.cpu_milli)
        if shape.is_share:
            lost = share_losses(self._demand, shape.milli, after, self.weights).min(axis=1, initial=np.inf)
            lost[np.isinf(lost)] = _NOWHERE  # the filter has rejected these nodes
        else:
            idle = before.idle.copy()
            whole = idle >= MILLI
            idle[whole & (np.cumsum(whole, axis=1) <= shape.gpus)] -= MILLI
            lost = fragmentation(self._demand, evolve(after, idle=idle), self.weights)
        left = before.idle.sum(axis=1) - shape.gpus * shape.milli
        spare = np.maximum(after.cpu_milli, 0) / _CPU_SCALE + left / _GPU_SCALE
        return int_scores(np.rint((lost_before - lost - self.weights.best_fit * spare) * _RESOLUTION))

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """0..100, and no node but the best has 100, however close the others are."""
        best, worst = int(scores.max()), int(scores.min())
        if best == worst:
            return np.full(len(scores), 100, dtype=np.int64)
        scaled = int_scores((scores - worst) * (99.0 / (best - worst)))
        scaled[scores == best] = 100
        return scaled

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Room comes with nodes, and where pods leave."""
        return [
            on(Resource.ASSIGNED_POD, Action.DELETE, node_local=True),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        ]

    # --- the GPUs of the node -----------------------------------------------------------------------------------------

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Choose the GPUs."""
        shape = self._shape(pod)
        if not shape.gpus or self._args.units_per_gpu == 1:
            return None
        nodes = self._handle.nodes
        position = nodes.position(node_name)
        if position is None:
            return unschedulable(f"node {node_name} is gone")
        self._forget_seen()
        # The pod is assumed on the node already, so its own share is taken out again.
        others = [one for one in nodes.node(position).pods if one.uid != pod.uid]
        chosen = self._choose(nodes, position, others, shape)
        if len(chosen) < shape.gpus:
            return unschedulable(f"node {node_name} has no GPU with as much left as the pod requests any more")
        self._chosen[pod.uid] = (pod.namespace, pod.name, chosen)
        self._node_gpus.forget(node_name)
        return None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Give them back."""
        if self._chosen.pop(pod.uid, None) is not None:
            self._node_gpus.forget(node_name)

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status | None:
        """Nothing is written for pods without GPUs, and where GPUs are not shared."""
        return PreFlight(allow_parallel=True) if pod.uid in self._chosen else SKIP

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Write down which GPUs the pod has, for the device plugin."""
        _namespace, _name, chosen = self._chosen[pod.uid]
        annotation = {self._args.index_annotation: ",".join(map(str, chosen))}
        change = {"metadata": {"uid": pod.uid, "annotations": annotation}}
        try:
            await self._handle.patch("Pod", pod.name, change, namespace=pod.namespace)
        except Exception as problem:
            return failure(f"cannot write the annotation {self._args.index_annotation}: {problem}")
        return None

    # --- details ------------------------------------------------------------------------------------------------------

    def _shape(self, pod: Pod) -> Shape:
        return shape_of(pod, self._args.resource, self._args.units_per_gpu, self._args.model_label)

    def _lenient_shape(self, pod: Pod) -> Shape:
        """The shape, even of a pod that another scheduler has placed with a request that this one refuses."""
        try:
            return self._shape(pod)
        except UnusableRequest:
            return Shape(0, 0, 0)

    def _gpus_of(self, amount: int) -> int:
        return min(amount // self._args.units_per_gpu, MAX_GPUS)

    def _index_of(self, pod: Pod) -> tuple[int, ...] | None:
        chosen = self._chosen.get(pod.uid)
        if chosen is not None:  # before the annotation, which can be that of an earlier attempt
            return chosen[2]
        written = (pod.metadata.annotations or {}).get(self._args.index_annotation)
        return None if written is None else parse_indexes(written)

    def _choose(self, nodes: NodeColumns, position: int, others: list[Pod], shape: Shape) -> tuple[int, ...]:
        idle = self._node_gpus.of(nodes, position, self._args.resource, others)
        if not shape.is_share:
            return choose(idle, shape)
        # The request of this pod is among those of the node already.
        states = self._states(nodes.take(np.array([position])))
        states = evolve(states, idle=np.array([idle], dtype=np.int64))
        losses = share_losses(self._demand, shape.milli, states, self.weights)
        loss, _left, best = min(
            ((loss, left, gpu) for gpu, (loss, left) in enumerate(zip(losses[0].tolist(), idle, strict=True))),
            default=(np.inf, 0, 0),
        )
        return () if np.isinf(loss) else (best,)

    def _states(self, nodes: NodeColumns) -> NodeStates:
        label = self._args.model_label
        vocabulary = nodes.label_vocabulary(label)
        values, model = np.unique(nodes.label_values(label), return_inverse=True)
        usable = [self._usable_by(vocabulary[value] or "") for value in values.tolist()]
        return NodeStates(
            cpu_milli=nodes.allocatable[0] - nodes.requested[0],
            idle=self._node_gpus.idle(nodes, self._args.resource),
            model=model.reshape(-1),
            usable=np.array(usable, dtype=np.bool_).reshape(len(usable), len(self._demand.shapes)),
        )

    def _usable_by(self, model: str) -> NDArray[np.bool_]:
        """Shape (shapes of the mix,)."""
        usable = self._usable.get(model)
        if usable is None:
            usable = self._usable[model] = self._demand.usable_on(model)
        return usable

    def _forget_seen(self) -> None:
        """Forget choices that stand in the annotations of pods by now, and those of pods that are gone."""
        if len(self._chosen) <= self._prune_above:
            return
        for uid, (namespace, name, chosen) in list(self._chosen.items()):
            pod = self._handle.object("Pod", name, namespace)
            if pod is None or pod.uid != uid or self._is_written(pod, chosen):
                del self._chosen[uid]
        self._prune_above = max(1_000, 2 * len(self._chosen))

    def _is_written(self, pod: Pod, chosen: tuple[int, ...]) -> bool:
        written = (pod.metadata.annotations or {}).get(self._args.index_annotation)
        return bool(pod.node_name) and written == ",".join(map(str, chosen))
