"""Kubernetes things as frozen slots classes, decoded straight from the wire.

Only the fields a scheduler needs are here; names are Kubernetes' own in snake case. No I/O, no numpy, no other room.
"""
