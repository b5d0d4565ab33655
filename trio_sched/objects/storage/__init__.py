"""Volumes, claims to them, and the kinds of the group storage.k8s.io."""
