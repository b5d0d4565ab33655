"""How a user's plugin set is merged with the default one."""

from trio_sched.config.schema import PluginRef, PluginSet


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Merge *custom* into *default*.

    A default that the user enables again keeps its place and takes the user's weight; the user's other plugins follow
    in their order. A name enabled twice stays twice: expanding the profile refuses it.

    Returns:
        The merged set; its disabled names are kept, because the expansion of ``multiPoint`` needs them.
    """
    disabled = tuple(PluginRef(ref.name) for ref in (*custom.disabled, *default.disabled))
    names_off = {ref.name for ref in disabled}
    last_index = {ref.name: index for index, ref in enumerate(custom.enabled)}
    enabled: list[PluginRef] = []
    replaced: set[int] = set()
    if "*" not in names_off:
        for ref in default.enabled:
            if ref.name in names_off:
                continue
            index = last_index.get(ref.name)
            if index is None:
                enabled.append(ref)
            else:
                enabled.append(custom.enabled[index])
                replaced.add(index)
    enabled.extend(ref for index, ref in enumerate(custom.enabled) if index not in replaced)
    return PluginSet(enabled=tuple(enabled), disabled=disabled)
