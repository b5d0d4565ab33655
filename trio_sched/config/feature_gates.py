"""Feature gates: which are on, given ``--feature-gates``, ``--emulated-version`` and ``--min-compatibility-version``.

Source: the component registry and the versioned feature gates of Kubernetes 1.36 and 1.37.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from attrs import evolve, field, frozen

import trio_sched
from trio_sched.config.errors import ConfigError, Problem
from trio_sched.config.feature_gate_table import TABLE
from trio_sched.go.text import quote

if TYPE_CHECKING:
    from trio_sched.plugin_api.behaviour import Behaviour
    from trio_sched.plugin_api.features import Features

Version = tuple[int, int]

DEFAULT_VERSION: Final[Version] = (1, 36)
"""What is emulated without ``--emulated-version``."""
OLDEST_VERSION: Final[Version] = (1, 33)
_BINARIES: Final = {DEFAULT_VERSION: trio_sched.KUBERNETES_VERSION, (1, 37): "1.37.0"}
"""The releases of kube-scheduler to act as, oldest first: an older minor version is emulated by the first of them."""
NEWEST_VERSION: Final[Version] = max(_BINARIES)
_STAGES: Final = {"a": "ALPHA", "b": "BETA", "g": "", "d": "DEPRECATED", "x": None}
_OUTDATED: Final[Mapping[str | None, str]] = {"": "GA", "DEPRECATED": "deprecated"}
_ALL: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_VERSION: Final = re.compile(r"\s*v?([0-9]+(?:\.[0-9]+)*)(.*)", re.DOTALL | re.ASCII)


@frozen
class Stage:
    """What a gate is from *since* on: alpha, beta, GA (empty), deprecated, or None if it is removed."""

    since: Version
    stage: str | None
    default: bool
    locked: bool
    compatibility: Version
    """The stage is only reached if all other components are at least of this version."""


@frozen
class Gate:
    """A feature gate: its history, and the gates that it needs."""

    name: str
    stages: tuple[Stage, ...]
    needs: tuple[str, ...]
    part_of: str
    """The gate that it is part of once it is removed; empty if what it switched is always on, or always off."""

    def at(self, version: Version, compatibility: Version | None = None) -> Stage | None:
        """What it is at *version*, which the other components have too, or *compatibility*; None before it existed."""
        oldest = compatibility or version
        reached = (one for one in reversed(self.stages) if one.since <= version and one.compatibility <= oldest)
        return next(reached, None)

    def is_known_to(self, release: Version) -> bool:
        """Whether kube-scheduler of the minor version *release* has it in its table."""
        stage = self.at(release)
        return stage is not None and stage.stage is not None


def release_for(version: Version) -> Version:
    """The minor version of the kube-scheduler that emulates *version*: itself, if that is no older than the default."""
    return next((release for release in _BINARIES if release >= version), NEWEST_VERSION)


def known_gates(version: Version = DEFAULT_VERSION) -> Mapping[str, Gate]:
    """The gates that can be named where *version* is emulated, by their names."""
    return _gates_of(release_for(version))


@cache
def _gates_of(release: Version) -> Mapping[str, Gate]:
    return {name: gate for name, gate in _all_gates().items() if gate.is_known_to(release)}


@cache
def _all_gates() -> Mapping[str, Gate]:
    return {gate.name: gate for gate in map(_parse_gate, TABLE.splitlines())}


@cache  # of each version, and the one before it or what a flag says
def _defaults(version: Version, compatibility: Version) -> Mapping[str, bool | str]:
    """Gate → whether it is on if nothing is said of it; or the name of the gate that it has become a part of."""
    defaults: dict[str, bool | str] = {}
    for name, gate in _all_gates().items():
        stage = gate.at(version, compatibility)
        is_merged = stage is not None and stage.stage is None and gate.part_of
        defaults[name] = gate.part_of if is_merged else stage is not None and stage.default
    return defaults


def _parse_gate(line: str) -> Gate:
    line, _, part_of = line.partition(" = ")
    description, _, needs = line.partition(" < ")
    name, *stages = description.split()
    return Gate(name, tuple(map(_parse_stage, stages)), tuple(needs.split()), part_of)


def _parse_stage(text: str) -> Stage:
    since, _, state = text.partition(":")
    state, _, compatibility = state.partition("@")
    return Stage(
        since=_minor_version(since),
        stage=_STAGES[state[0]],
        default=state[1] == "+",
        locked=state.endswith("!"),
        compatibility=_minor_version(compatibility) if compatibility else (0, 0),
    )


def _minor_version(text: str) -> Version:
    major, minor = map(int, text.split("."))
    return major, minor


@frozen
class FeatureGates:
    """The gates of one process: those set by flag, and every other at its default for the emulated version."""

    version: Version = DEFAULT_VERSION
    overrides: Mapping[str, bool] = field(factory=dict)
    compatibility: Version = (1, 35)
    """The oldest version of other components to be compatible with."""

    @classmethod
    def emulating(cls, version: str, overrides: Mapping[str, bool]) -> "FeatureGates":
        """The gates of *version*, ``1.37`` or empty for the default, with *overrides* as they are.

        Raises:
            ConfigError: the version is malformed, or cannot be emulated.
        """
        gates = resolve_feature_gates(emulated=[version])
        if problems := gates.out_of_range():
            raise ConfigError(problems)
        return evolve(gates, overrides=dict(overrides))

    def out_of_range(self) -> tuple[Problem, ...]:
        """What is wrong with the versions: which this program cannot emulate, or not together."""
        return tuple(_out_of_range(self.version, self.compatibility))

    def enabled(self, name: str) -> bool:
        """Whether the gate *name* is on.

        Raises:
            KeyError: there is no such gate.
        """
        if name in self.overrides:
            return self.overrides[name]
        default = _defaults(self.version, self.compatibility)[name]
        return self.enabled(default) if isinstance(default, str) else default

    @cached_property
    def behaviour(self) -> "Behaviour":
        """What the version does that no gate switches."""
        from trio_sched.plugin_api.behaviour import behaviour_at  # what runs nothing does not import the package

        return behaviour_at(self.version)

    def stages(self) -> Iterable[tuple[Gate, Stage]]:
        """The gates that exist in this version, each with what it is there."""
        for gate in known_gates(self.version).values():
            stage = gate.at(self.version, self.compatibility)
            if stage is not None:
                yield gate, stage

    @property
    def version_text(self) -> str:
        """The minor version that is emulated: ``1.36``."""
        return _text(self.version)

    @property
    def binary_version(self) -> str:
        """The patch version of kube-scheduler that this program acts as: ``1.36.2``."""
        return _BINARIES[release_for(self.version)]

    @cached_property
    def features(self) -> "Features":
        """The gates that are read anywhere."""
        from trio_sched.plugin_api.features import Features  # what runs nothing does not import the package

        return Features.of(self.enabled)

    def help_lines(self) -> list[str]:
        """The alpha and beta gates as ``--help`` lists them."""
        lines = ["kube:AllAlpha=true|false (ALPHA - default=false)", "kube:AllBeta=true|false (BETA - default=false)"]
        for gate, stage in self.stages():
            if stage.stage in _ALL.values():
                lines.append(f"kube:{gate.name}=true|false ({stage.stage} - default={_go_bool(stage.default)})")
        return sorted(lines)


DEFAULT_GATES: Final = FeatureGates()
"""The gates of 1.36 without flags."""


def resolve_feature_gates(
    settings: Sequence[str] = (), *, emulated: Sequence[str] = (), min_compatibility: Sequence[str] = ()
) -> FeatureGates:
    """Work out the gates from the values of the three flags, each value possibly a comma-separated list.

    Raises:
        ConfigError: a setting is malformed, unknown, locked, or lacks a gate that it needs;
            or a version is malformed. The ranges of the versions are checked by `FeatureGates.out_of_range`.
    """
    chosen = _parse_versions(_split(emulated))
    compatible_with = _parse_versions(_split(min_compatibility))
    version = chosen or DEFAULT_VERSION
    compatibility = compatible_with or max((version[0], version[1] - 1), OLDEST_VERSION)
    return FeatureGates(version, _override(_parse_settings(settings), version, compatibility), compatibility)


@frozen
class OutdatedGate:
    """A gate that is set, and will not exist for ever."""

    name: str
    value: bool
    stage: str
    """``GA`` or ``deprecated``."""


def outdated_gates(settings: Sequence[str], version: Version) -> list[OutdatedGate]:
    """The gates among valid *settings* that are GA or deprecated at *version*."""
    found = []
    for name, value in _parse_settings(settings).items():
        stage = known_gates(version)[name].at(version) if name not in _ALL else None
        if stage is not None and (outdated := _OUTDATED.get(stage.stage)):
            found.append(OutdatedGate(name, value, outdated))
    return found


def _split(values: Sequence[str]) -> list[str]:
    return [part for value in values if value for part in value.split(",")]


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _out_of_range(version: Version, compatibility: Version) -> Iterable[Problem]:
    oldest = _text(OLDEST_VERSION)
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        newest = f"{_text(release_for(version))}.0"
        yield Problem("", f"emulation version {_text(version)} is not between [{oldest}, {newest}]")
    if not OLDEST_VERSION <= compatibility <= version:
        shown = _text(compatibility)
        yield Problem("", f"minCompatibilityVersion version {shown} is not between [{oldest}, {_text(version)}]")


def _parse_versions(values: Iterable[str]) -> Version | None:
    """The version for the component ``kube``, the only one there is."""
    versions: dict[str, tuple[int, ...]] = {}
    for value in values:
        component, separator, text = value.partition("=")
        if separator:
            component, text = component.strip(), text.strip()
        else:
            component, text = "kube", value
        numbers = _parse_version(text)
        shown = ".".join(map(str, numbers))
        if len(numbers) > 2 and numbers[2]:
            raise ConfigError.of(f"patch version not allowed, got: {component}={shown}")
        if component in versions:
            before = ".".join(map(str, versions[component]))
            raise ConfigError.of(f"duplicate version flag, {component}={before} and {component}={shown}")
        versions[component] = numbers
    for component in versions:
        if component != "kube":
            raise ConfigError.of(f"component not registered: {component}")
    return versions["kube"][:2] if versions else None  # type: ignore[return-value]  # _parse_version gives two or more


def _parse_version(text: str) -> tuple[int, ...]:
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ConfigError.of(f"could not parse {quote(text)} as version")
    parts = match.group(1).split(".")
    if len(parts) < 2:
        raise ConfigError.of(f"illegal version string {quote(text)}")
    for part in parts:
        if len(part) > 1 and part.startswith("0"):
            raise ConfigError.of(f"illegal zero-prefixed version component {quote(part)} in {quote(text)}")
    return tuple(map(int, parts))


def _parse_settings(values: Sequence[str]) -> dict[str, bool]:
    """``[component:]Gate=bool`` pairs as a mapping."""
    by_component: dict[str, list[str]] = {}
    for value in values:
        for pair in filter(None, map(str.strip, value.split(","))):
            component, separator, setting = pair.partition(":")
            if not separator:
                component, setting = "", pair
            by_component.setdefault(component.strip(), []).append(setting.strip())
    if "" in by_component and "kube" in by_component:
        raise ConfigError.of(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        )
    for component in by_component:
        if component not in ("", "kube"):
            raise ConfigError.of(f"component not registered: {component}")
    return dict(map(_parse_setting, filter(None, [s for settings in by_component.values() for s in settings])))


def _parse_setting(setting: str) -> tuple[str, bool]:
    name, separator, value = setting.partition("=")
    name, value = name.strip(), value.strip()
    if not separator:
        raise ConfigError.of(f"missing bool value for {name}")
    if value not in _TRUE | _FALSE:
        problem = f"strconv.ParseBool: parsing {quote(value)}: invalid syntax"
        raise ConfigError.of(f"invalid value of {name}={value}, err: {problem}")
    return name, value in _TRUE


def _go_bool(value: bool) -> str:
    return "true" if value else "false"


def _override(settings: Mapping[str, bool], version: Version, compatibility: Version) -> dict[str, bool]:
    """The gates that *settings* change, bulk switches spelled out."""
    problems: list[Problem] = []
    overrides: dict[str, bool] = {}
    known = known_gates(version)
    for name, value in settings.items():
        if name in _ALL:
            continue
        gate = known.get(name)
        if gate is None:
            problems.append(Problem("", f"unrecognized feature gate: {name}"))
            continue
        stage = gate.at(version, compatibility)
        refusal = f"cannot set feature gate {name} to {_go_bool(value)}, feature is"
        if stage is None:
            at = f"emulated version {_text(version)}, min compatibility version {_text(compatibility)}"
            problems.append(Problem("", f"{refusal} PreAlpha at {at}"))
        elif stage.locked and value != stage.default:
            problems.append(Problem("", f"{refusal} locked to {_go_bool(stage.default)}"))
        else:
            overrides[name] = value
    if problems:
        raise ConfigError(problems)
    for switch, stage_name in _ALL.items():
        if switch in settings:
            for gate, stage in FeatureGates(version, compatibility=compatibility).stages():
                if stage.stage == stage_name:
                    overrides.setdefault(gate.name, settings[switch])
    gates = FeatureGates(version, overrides, compatibility)
    problems = [
        Problem("", f"{gate.name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
        for gate in known.values()
        if gates.enabled(gate.name) and (missing := [need for need in sorted(gate.needs) if not gates.enabled(need)])
    ]
    if problems:
        raise ConfigError(problems)
    return overrides
