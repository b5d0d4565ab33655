"""What is done with workloads, step by step, on the simulator and on a real control plane."""

import job_scenarios
import node_scenarios
import ownership_scenarios
import replica_scenarios
import task_scenarios
from workload_parts import SCENARIOS

__all__ = ["SCENARIOS", "job_scenarios", "node_scenarios", "ownership_scenarios", "replica_scenarios", "task_scenarios"]
