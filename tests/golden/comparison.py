"""One comparison of a recording with what we do, and which plugins nobody has written yet."""

from typing import Final

from attrs import frozen

AWAITED_PLUGINS: Final = frozenset(
    {
        "DefaultPreemption",
        "DynamicResources",
        "GangScheduling",
        "InterPodAffinity",
        "PodGroupPodsCount",
        "PodTopologySpread",
        "TopologyPlacementGenerator",
    }
)
"""In-tree plugins of later issues; whoever writes one takes its name out, and its rows must agree from then on."""


@frozen
class Comparison:
    """One count in the row *row*; *awaited* if it cannot agree before a plugin of `AWAITED_PLUGINS` is there."""

    row: str
    agreed: bool
    detail: str = ""
    awaited: bool = False


def missing(plugin: str, where: str) -> Comparison:
    """What is recorded of *plugin*, which is not installed; an error unless it is awaited."""
    return Comparison(plugin, False, f"{where}: no such plugin yet", awaited=plugin in AWAITED_PLUGINS)
