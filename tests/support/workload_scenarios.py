"""What is done with workloads, step by step, on the simulator and on a real control plane."""

import replica_scenarios
import task_scenarios
from workload_parts import SCENARIOS

__all__ = ["SCENARIOS", "replica_scenarios", "task_scenarios"]
