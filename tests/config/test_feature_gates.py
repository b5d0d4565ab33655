from typing import Any

import pytest

from trio_sched.config.errors import ConfigError
from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates, known_gates, resolve_feature_gates


def refusal(*settings: str, **versions: list[str]) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve_feature_gates(settings, **versions)
    return str(caught.value)


def test_defaults_are_those_of_the_version() -> None:
    assert DEFAULT_GATES.enabled("NodeDeclaredFeatures")
    assert not DEFAULT_GATES.enabled("GenericWorkload")
    before = resolve_feature_gates(emulated=["1.35"])
    assert not before.enabled("NodeDeclaredFeatures")
    assert not resolve_feature_gates(emulated=["1.33"]).enabled("DynamicResourceAllocation")


def test_every_gate_that_another_needs_exists_and_allows_the_defaults_of_every_version() -> None:
    for minor in (33, 34, 35, 36, 37):
        gates = FeatureGates((1, minor))
        for gate in known_gates(gates.version).values():
            assert not gates.enabled(gate.name) or all(gates.enabled(need) for need in gate.needs), (minor, gate.name)


def test_settings_may_come_in_several_flags_with_or_without_the_component() -> None:
    gates = resolve_feature_gates(["GenericWorkload=true,GangScheduling=T", "StorageCapacityScoring=1"])
    assert all(gates.enabled(name) for name in ("GenericWorkload", "GangScheduling", "StorageCapacityScoring"))
    assert resolve_feature_gates(["kube:StorageCapacityScoring=true"]).enabled("StorageCapacityScoring")


def test_bulk_switches_leave_alone_what_is_set_by_name() -> None:
    gates = resolve_feature_gates(["AllAlpha=true,StorageCapacityScoring=false"])
    assert gates.enabled("GangScheduling")
    assert not gates.enabled("StorageCapacityScoring")
    assert not resolve_feature_gates(["AllBeta=false"]).enabled("NodeDeclaredFeatures")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("GenericWorkload", "missing bool value for GenericWorkload"),
        (
            "GenericWorkload=maybe",
            'invalid value of GenericWorkload=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (
            "SchedulerQueueingHints=false",
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        ),
        ("foo:StorageCapacityScoring=true", "component not registered: foo"),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "kube:GenericWorkload=true,GenericWorkload=true",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
    ],
)
def test_a_wrong_setting_is_refused(setting: str, problem: str) -> None:
    assert refusal(setting) == problem


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("abc", 'could not parse "abc" as version'),
        ("1", 'illegal version string "1"'),
        ("1.35.2", "patch version not allowed, got: kube=1.35.2"),
        ("foo=1.35", "component not registered: foo"),
        ("1.35,1.34", "duplicate version flag, kube=1.35 and kube=1.34"),
    ],
)
def test_a_malformed_version_is_refused(version: str, problem: str) -> None:
    assert refusal(emulated=[version]) == problem


@pytest.mark.parametrize(
    ("versions", "problems"),
    [
        ({"emulated": ["1.38"]}, ["emulation version 1.38 is not between [1.33, 1.37.0]"]),
        (
            {"emulated": ["1.32"]},
            [
                "emulation version 1.32 is not between [1.33, 1.36.0]",
                "minCompatibilityVersion version 1.33 is not between [1.33, 1.32]",
            ],
        ),
        (
            {"emulated": ["1.35"], "min_compatibility": ["1.36"]},
            ["minCompatibilityVersion version 1.36 is not between [1.33, 1.35]"],
        ),
        ({"emulated": ["kube=1.36.0"], "min_compatibility": ["1.33"]}, []),
    ],
)
def test_versions_out_of_range_are_named(versions: dict[str, Any], problems: list[str]) -> None:
    assert list(map(str, resolve_feature_gates(**versions).out_of_range())) == problems


def test_a_gate_cannot_be_set_before_it_existed() -> None:
    assert refusal("NodeDeclaredFeatures=true", emulated=["1.34"]) == (
        "cannot set feature gate NodeDeclaredFeatures to true, feature is PreAlpha at emulated version 1.34, "
        "min compatibility version 1.33"
    )


def test_defaults_of_1_37_are_on_without_a_flag() -> None:
    before, gates = DEFAULT_GATES, resolve_feature_gates(emulated=["1.37"])
    for name in ("StorageCapacityScoring", "VolumeLimitScaling", "DRADeviceTaintRules"):
        assert (before.enabled(name), gates.enabled(name)) == (False, True)
    assert (gates.binary_version, gates.version_text, gates.compatibility) == ("1.37.0", "1.37", (1, 36))
    assert (before.binary_version, before.version_text) == ("1.36.2", "1.36")
    assert "kube:StorageCapacityScoring=true|false (BETA - default=true)" in gates.help_lines()
    assert not [line for line in gates.help_lines() if "GangScheduling" in line]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("GangScheduling=true", "unrecognized feature gate: GangScheduling"),
        ("SidecarContainers=true", "unrecognized feature gate: SidecarContainers"),
        (
            "DRAExtendedResource=false",
            "cannot set feature gate DRAExtendedResource to false, feature is locked to true",
        ),
        (
            "DRADeviceTaints=false",
            "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]",
        ),
    ],
)
def test_what_1_37_refuses_1_36_takes(setting: str, problem: str) -> None:
    assert refusal(setting, emulated=["1.37"]) == problem
    needed = "GenericWorkload=true" if setting.startswith("Gang") else "StorageCapacityScoring=false"
    name, _, value = setting.partition("=")
    assert resolve_feature_gates([setting, needed]).enabled(name) == (value == "true")


def test_since_1_37_declared_features_cannot_be_switched_off() -> None:
    setting = "NodeDeclaredFeatures=false"
    text = "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true"
    assert refusal(setting, emulated=["1.37"]) == text
    need_it = (
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
    )
    settings = [setting, *(f"{name}=false" for name in need_it)]
    assert not resolve_feature_gates(settings).enabled("NodeDeclaredFeatures")


def test_gates_of_1_37_are_unknown_before() -> None:
    setting = "SchedulerPreQueueingHints=true"
    assert resolve_feature_gates([setting], emulated=["1.37"]).enabled("SchedulerPreQueueingHints")
    assert refusal(setting) == "unrecognized feature gate: SchedulerPreQueueingHints"
    assert "SchedulerPreQueueingHints" not in known_gates()


def test_a_removed_gate_is_what_has_become_of_it() -> None:
    groups = resolve_feature_gates(["GenericWorkload=true"], emulated=["1.37"])
    assert groups.features.gang_scheduling
    assert groups.features.workload_aware_preemption
    assert not resolve_feature_gates(["GenericWorkload=true"]).features.gang_scheduling
    assert not resolve_feature_gates(emulated=["1.37"]).features.gang_scheduling


def test_a_gate_can_need_that_all_components_are_new() -> None:
    name = "DRAFractionalCapacityRange"
    assert not resolve_feature_gates(emulated=["1.37"]).enabled(name)
    assert resolve_feature_gates(emulated=["1.37"], min_compatibility=["1.37"]).enabled(name)


def test_gates_for_a_cluster_of_a_version_that_cannot_be_emulated_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"emulation version 1\.38 is not between"):
        FeatureGates.emulating("1.38", {})
