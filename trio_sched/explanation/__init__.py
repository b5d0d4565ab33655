"""Why a pod is pending or where it is, and what would change that, tried on copies of the cluster."""
