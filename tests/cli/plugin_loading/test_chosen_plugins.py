from importlib.metadata import entry_points

import pytest

from trio_sched.cli.plugin_loading.chosen_plugins import check_arguments
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.engine.hooks.plugin_errors import UnknownPlugin
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.plugin_api.extension_points import PROJECT


def test_every_plugin_of_kubernetes_is_installed_with_this_package() -> None:
    check_arguments(resolve_profiles(load_configuration(None), KNOWN_PLUGINS), PluginRegistry.discover())
    assert set(PluginRegistry.discover().names) >= set(KNOWN_PLUGINS)


@pytest.mark.parametrize("name", ["DefaultBinder", "NodePorts"])
def test_a_default_plugin_that_is_not_installed_is_an_error(name: str) -> None:
    registry = PluginRegistry.of(one for one in entry_points(group=PROJECT) if one.name != name)
    with pytest.raises(UnknownPlugin, match=name):
        check_arguments(resolve_profiles(load_configuration(None), KNOWN_PLUGINS), registry)
