"""The controllers of nodes: taints, evictions, pods of nodes that are gone."""
