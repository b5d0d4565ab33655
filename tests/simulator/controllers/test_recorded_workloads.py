"""The scenarios of ``workload_scenarios`` on the simulator: what there is after each step, a real control plane had."""

import pytest
from workload_recording import differences, read_recording
from workload_scenarios import SCENARIOS
from workload_worlds import on_simulator

RECORDED = read_recording()


def test_every_scenario_is_recorded() -> None:
    assert sorted(RECORDED) == sorted(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_workloads_do_what_they_did_in_a_cluster(name: str) -> None:
    told = differences(on_simulator(name, SCENARIOS[name]), RECORDED[name])
    assert not told, told
