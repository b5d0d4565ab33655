"""Devices of nodes, and which of them are allocated."""
