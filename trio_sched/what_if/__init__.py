"""What would become of the pods of a cluster if it were changed: answers of the real scheduler on a simulated copy."""
