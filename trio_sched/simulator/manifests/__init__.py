"""Clusters from files: read, checked, completed, copied, and created in the store."""
