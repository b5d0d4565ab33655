"""Pods that are scheduled together: groups, groups of groups, and the workloads that they are made for."""
