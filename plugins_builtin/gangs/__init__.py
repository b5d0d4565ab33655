"""GangScheduling, PodGroupPodsCount and TopologyPlacementGenerator."""
