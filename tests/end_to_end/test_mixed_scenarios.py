"""Mixed scenarios are placed alike on the API server of every version."""

import pytest
from scenario_outcomes import is_served, simulated_outcome

from contrib.scenarios.mixed.all_scenarios import MIXED_SCENARIOS
from contrib.scenarios.mixed.scenario import POD_GROUPS, MixedScenario
from trio_sched.testing.virtual_time import run_virtual


@pytest.mark.parametrize("scenario", MIXED_SCENARIOS, ids=[one.name for one in MIXED_SCENARIOS])
def test_a_scenario_is_placed_alike_on_every_version(scenario: MixedScenario) -> None:
    expected = run_virtual(simulated_outcome, scenario)
    assert any(expected.tried.values())
    for minor in (31, 32, 33, 37):  # 1.34 and 1.35 serve what 1.36 serves of what the scenarios have
        if is_served(scenario, minor):
            assert run_virtual(simulated_outcome, scenario, minor) == expected


_SHARED = [one for one in MIXED_SCENARIOS if one.needs != POD_GROUPS][::10]  # all of them take ten seconds


@pytest.mark.parametrize("scenario", _SHARED, ids=[one.name for one in _SHARED])
def test_a_replica_that_has_all_shards_places_it_as_a_scheduler_that_shares_nothing(scenario: MixedScenario) -> None:
    assert run_virtual(simulated_outcome, scenario, 36, 16) == run_virtual(simulated_outcome, scenario)
