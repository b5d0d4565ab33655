"""Amounts of resources: quantities as texts and as numbers."""
