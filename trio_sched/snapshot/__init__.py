"""The cluster at one instant as numpy columns, and how it follows the cluster change by change.

Calls no plugin and reads no profile. Each module imports only modules below it: `NodeTable` writes columns and indexes,
`NodeColumns` and the modules above it read them; the import-linter contract in ``pyproject.toml`` lists the layers.
"""
