from importlib.metadata import entry_points

import pytest

from trio_sched.cli.chosen_plugins import NotYetAvailable, choose_installed
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import ResolvedProfile, resolve_profiles
from trio_sched.engine.plugin_errors import UnknownPlugin
from trio_sched.engine.plugin_registry import PluginRegistry
from trio_sched.plugin_api.extension_points import PROJECT

GATES = FeatureGates(overrides={"GenericWorkload": True, "GangScheduling": True})


def profiles(text: str | None = None) -> tuple[ResolvedProfile, ...]:
    return resolve_profiles(load_configuration(text, gates=GATES), KNOWN_PLUGINS, GATES)


def registry_without(*names: str) -> PluginRegistry:
    return PluginRegistry.of(one for one in entry_points(group=PROJECT) if one.name not in names)


def test_a_default_plugin_that_is_not_installed_is_left_out() -> None:
    chosen = choose_installed(profiles(), registry_without("GangScheduling"))
    assert chosen.missing == ("GangScheduling",)
    assert "GangScheduling" not in chosen.profiles[0].plugins
    assert choose_installed(profiles(), registry_without()).missing == ()


def test_one_that_the_configuration_names_is_refused() -> None:
    text = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {permit: {enabled: [{name: GangScheduling}]}}}]
"""
    with pytest.raises(NotYetAvailable, match="plugin 'GangScheduling' is not available in this version"):
        choose_installed(profiles(text), registry_without("GangScheduling"))


def test_one_that_nothing_works_without_is_refused() -> None:
    with pytest.raises(UnknownPlugin, match="DefaultBinder"):
        choose_installed(profiles(), registry_without("DefaultBinder"))
