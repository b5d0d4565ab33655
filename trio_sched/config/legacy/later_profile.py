"""Converts a profile of v1beta3, which has the shape of v1, but may name plugins that have been removed since."""

from collections.abc import Mapping
from typing import Any

from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.component_arguments import old_arguments
from trio_sched.config.legacy.retired_plugins import VOLUME_LIMITS, removed_before
from trio_sched.config.legacy.values import without_empty

_VERSION = "v1beta3"
_LIMITS = "NodeVolumeLimits"


def later_profile(profile: Mapping[str, Any], values: Mapping[str, Any], changes: Changes, path: str) -> dict[str, Any]:
    """The profile in v1.

    Args:
        profile: its decoded fields.
        values: the same as it was written.
        changes: where the changes are noted.
        path: of the profile in the document.

    Raises:
        ConfigError: the arguments of a plugin are not what it takes.
    """
    arguments = old_arguments(profile.get("pluginConfig") or (), _VERSION, changes, f"{path}.pluginConfig")
    config = [{"name": name, "args": args} for name, args in (*arguments.todays.items(), *arguments.foreign.items())]
    plugins = {
        point: without_empty(_set(plugin_set, changes, f"{path}.plugins.{point}"))
        for point, plugin_set in (values.get("plugins") or {}).items()
    }
    return without_empty(
        {
            "schedulerName": profile.get("schedulerName"),
            "plugins": without_empty(plugins),
            "pluginConfig": [entry for entry in config if entry["args"] is not None],
        }
    )


def _set(plugin_set: Mapping[str, Any], changes: Changes, path: str) -> dict[str, Any]:
    enabled: list[Any] = []
    for index, ref in enumerate(plugin_set.get("enabled") or ()):
        name, place = _name(ref), f"{path}.enabled[{index}]"
        if removed_before(name, _VERSION):
            changes.refuse(place, f"plugin {name!r} was no part of {_VERSION} any more; leave it out")
        elif name not in VOLUME_LIMITS:
            enabled.append(ref)
        else:
            changes.note(place, f"{name} is gone; {_LIMITS} counts these volumes now")
            others = map(_name, plugin_set["enabled"])
            if _LIMITS not in others and _LIMITS not in map(_name, enabled):
                enabled.append({"name": _LIMITS})
    disabled: list[Any] = []
    for index, ref in enumerate(plugin_set.get("disabled") or ()):
        if _name(ref) in VOLUME_LIMITS:
            changes.note(f"{path}.disabled[{index}]", f"{_name(ref)} is gone; {_LIMITS} counts these volumes now")
        else:
            disabled.append(ref)
    return {"disabled": disabled, "enabled": enabled}


def _name(ref: Mapping[str, Any] | None) -> str:
    name: str = (ref or {}).get("name", "")
    return name
