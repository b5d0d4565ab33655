"""Clusters and workloads to schedule, and the programs that wrote them."""
