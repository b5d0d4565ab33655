from attrs import fields

from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates, known_gates
from trio_sched.plugin_api.features import Features


def test_every_feature_is_a_gate_of_its_own() -> None:
    gates = [one.metadata["gate"] for one in fields(Features)]
    assert sorted(set(gates) & (known_gates().keys() | known_gates((1, 37)).keys())) == sorted(gates)
    assert [one.name.replace("_", "") for one in fields(Features)] == [gate.lower() for gate in gates]


def test_features_are_those_of_the_gates() -> None:
    assert DEFAULT_GATES.features.pod_level_resources
    assert not DEFAULT_GATES.features.generic_workload
    assert FeatureGates(overrides={"GenericWorkload": True}).features.generic_workload
