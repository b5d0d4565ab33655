"""Values and types of CEL, and the types that Kubernetes adds."""
