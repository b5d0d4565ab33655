"""Replicas that share the work, as processes on a real API server, with faults and what must hold meanwhile."""
