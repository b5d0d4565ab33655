"""Rules for custom resource definitions, and for custom resources by their schemas."""
