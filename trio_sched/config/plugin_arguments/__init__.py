"""The arguments of the in-tree plugins (``pluginConfig``): one file per plugin, and a table of them.

Every plugin's file has the same names in the same order:

- `FIELDS`: the fields on the wire, and their Go types;
- `defaults`: the arguments of a plugin for which the file says nothing, under the feature gates;
- `convert`: from the fields that the file gives to the public class of `trio_sched.plugin_api.arguments`;
- `validate`: what is wrong with the arguments, in kube-scheduler's order and words;
- `dump`: back to the fields, as a completed file shows them.

The defaults that no feature gate changes stand at the public class: plugin authors build it without a file. A new
plugin is a class there, a file here and a row in `table`. `resource_spec` and `utilization_shape` are the types that
several plugins have in their arguments.
"""
