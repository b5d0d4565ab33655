"""How a user's plugin set is laid over the default one."""

from trio_sched.config.schema import PluginRef, PluginSet


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Lay *custom* over *default*.

    A default that the user enables again keeps its place and takes the user's weight; the user's other plugins follow
    in their order. A name enabled twice stays twice: building the profile will refuse it.

    Returns:
        The merged set; its disabled names are kept, because the expansion of ``multiPoint`` asks for them.
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
