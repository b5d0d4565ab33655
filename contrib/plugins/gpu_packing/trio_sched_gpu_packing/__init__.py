"""GpuPacking: a plugin for trio-sched that keeps idle GPUs usable."""

from trio_sched_gpu_packing.plugin import GpuPacking as GpuPacking

__all__ = ["GpuPacking"]
