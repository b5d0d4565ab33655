"""YAML and JSON from outside, read with bounds: the one way into the process for every file that a person wrote.

`files` reads bytes from a path and decodes them, `yaml_composer` composes YAML, and `yaml_reader` and `json_reader`
turn that into a `Tree` (the configuration, with the error texts of Go) or into plain values (kubeconfigs, manifests),
whose type and encoder are in `json_values`. Depth, aliases and sizes are bounded; errors name line and column, and
quote no more than `shortened` leaves.
"""
