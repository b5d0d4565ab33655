"""What a change has to do with other pods: those of the workload, and those that could take the place first."""
