"""NodeMaintenance: a plugin for trio-sched that keeps pods away from nodes with a planned maintenance."""

from trio_sched_node_maintenance.maintenance import MAINTENANCE as MAINTENANCE
from trio_sched_node_maintenance.plugin import NodeMaintenance as NodeMaintenance
from trio_sched_node_maintenance.plugin import NodeMaintenanceArgs as NodeMaintenanceArgs

__all__ = ["MAINTENANCE", "NodeMaintenance", "NodeMaintenanceArgs"]
