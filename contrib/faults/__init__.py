"""Faults between a scheduler and a real control plane: how soon a pod is bound afterwards, and what must hold then."""
