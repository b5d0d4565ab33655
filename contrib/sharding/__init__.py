"""A simulation of several schedulers that share the nodes of a cluster, with everything that can go wrong."""
