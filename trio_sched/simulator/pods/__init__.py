"""What is a pod's by default, and what it requests."""
