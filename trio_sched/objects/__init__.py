"""Kubernetes objects as frozen slots classes, decoded directly from JSON.

They have only the fields that a scheduler needs; names are Kubernetes' own in snake case. No I/O, no numpy, no imports
from other packages of trio_sched.
"""
