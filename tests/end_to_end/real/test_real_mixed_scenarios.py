"""On a real API server of any version mixed scenarios are placed as the simulator says of 1.36."""

from functools import partial
from pathlib import Path

import pytest
import trio
from real_scenarios import ScenarioServer
from real_servers import ASSETS, Files, real_server
from real_versions import minor_of
from scenario_outcomes import Outcome, is_served, simulated_outcome

from contrib.scenarios.mixed.all_scenarios import MIXED_SCENARIOS
from trio_sched.testing.virtual_time import run_virtual

pytestmark = pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")


def test_mixed_scenarios_are_placed_as_on_1_36(tmp_path: Path) -> None:
    expected = {one.name: run_virtual(simulated_outcome, one) for one in MIXED_SCENARIOS}
    differences = trio.run(partial(differences_on_server, expected, tmp_path))
    assert not differences, "\n".join(differences)


async def differences_on_server(expected: dict[str, Outcome], folder: Path) -> list[str]:
    """``scenario: difference`` of those that are not placed as *expected*."""
    async with real_server(Files(folder), all_kinds=True) as server:
        minor = await minor_of(server)
        tried = ScenarioServer(server, minor)
        found = {
            one.name: await tried.difference(one, expected[one.name])
            for one in MIXED_SCENARIOS
            if is_served(one, minor)
        }
        return [f"{name}: {difference}" for name, difference in found.items() if difference]
