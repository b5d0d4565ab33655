"""Makes the table of the fields of Kubernetes' kinds, which the simulator checks objects with."""
