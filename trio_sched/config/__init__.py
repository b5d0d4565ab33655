"""The scheduler's configuration: what a file and the flags say, completed, validated, and written back.

Pure: text in, values out. Nothing here reads a file or loads a plugin. The steps:
`parse` (text → fields that are given) → `defaults` (→ `schema`) → `validation`, together in `load`; then `expansion`
(profile → plugins per point) and `dump` (→ YAML). `feature_gates` decides which defaults there are.
`plugin_arguments` has a file per in-tree plugin, from which all these steps take what concerns its ``pluginConfig``.
"""
