"""Writes a `ProfileDraft` in v1, without what is so by default.

Defaults are switched off by name, never with ``*``: whatever is newer than the legacy document then stays as it is by
default, behind its feature gate.
"""

from collections.abc import Mapping
from typing import Any, Final

from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.known_plugins import KNOWN_PLUGINS, default_plugins
from trio_sched.config.legacy.profile_draft import NEWER_PLUGINS, ProfileDraft
from trio_sched.config.legacy.values import without_empty
from trio_sched.config.wire_types import POINTS

_DEFAULTS: Final = {ref.name: ref.weight for ref in default_plugins(DEFAULT_GATES) if ref.name not in NEWER_PLUGINS}
_POINTS: Final = tuple(point for point in POINTS if point not in ("multiPoint", "placementGenerate", "placementScore"))
_WEIGHING: Final = "score"


def write_profile(draft: ProfileDraft) -> dict[str, Any]:
    """*draft* as an entry of ``profiles``; empty if it is what v1 does by default."""
    told = {name: args for name, args in draft.args.items() if args}
    told |= {name: args for name, args in draft.foreign_args.items() if args is not None}
    config = [{"name": name, "args": args} for name, args in told.items()]
    return without_empty({"schedulerName": draft.scheduler_name, "plugins": _plugins(draft), "pluginConfig": config})


def _plugins(draft: ProfileDraft) -> dict[str, Any]:
    running = {name for plugins in draft.points.values() for name in plugins}
    nowhere = [name for name in _DEFAULTS if name not in running]
    sets = {"multiPoint": _set(_weights(draft), nowhere)}
    for point in _POINTS:
        wanted = draft.points.get(point, {})
        by_default = [name for name in _DEFAULTS if POINTS[point] in KNOWN_PLUGINS[name] and name in running]
        disabled = [*(name for name in by_default if name not in wanted), *draft.newer_off.get(point, [])]
        enabled = _enabled(point, wanted, by_default)
        sets[point] = _set(enabled, disabled)
    return without_empty(sets)


def _weights(draft: ProfileDraft) -> list[dict[str, Any]]:
    """Default plugins with another weight than by default; named at ``multiPoint`` they keep their places."""
    scorers = draft.points.get(_WEIGHING, {})
    return [
        {"name": name, "weight": scorers[name] or 1}
        for name, weight in _DEFAULTS.items()
        if name in scorers and (scorers[name] or 1) != (weight or 1)
    ]


def _enabled(point: str, wanted: Mapping[str, int], by_default: list[str]) -> list[dict[str, Any]]:
    """What has to be named at *point*: what is no default there, and all of it if the order is not the default one."""
    weighs = point == _WEIGHING
    kept = [name for name in wanted if name in by_default]
    # Scores are added up, so their order does not matter.
    in_order = weighs or kept == [name for name in by_default if name in wanted]
    others = [name for name in wanted if name not in by_default]
    named = others if in_order else [*kept, *others]
    return [{"name": name, "weight": wanted[name] or 1} if weighs else {"name": name} for name in named]


def _set(enabled: list[dict[str, Any]], disabled: list[str]) -> dict[str, Any]:
    return without_empty({"disabled": [{"name": name} for name in disabled], "enabled": enabled})
