"""The same steps on the simulator and on a real control plane: the same pods, statuses and events after each.

With ``RECORD_WORKLOADS=1`` what the control plane did is kept for the test that needs none.
"""

import os
from pathlib import Path

import pytest
from workload_recording import differences, write_recording
from workload_scenarios import SCENARIOS
from workload_worlds import CONTROLLER_MANAGER, on_real_control_plane, on_simulator


@pytest.mark.skipif(
    not os.access(CONTROLLER_MANAGER, os.X_OK),
    reason="KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kube-controller-manager",
)
def test_the_simulator_does_what_a_real_control_plane_does(tmp_path: Path) -> None:
    simulated = {name: on_simulator(name, one) for name, one in SCENARIOS.items()}
    real = on_real_control_plane(tmp_path, SCENARIOS, simulated)
    if os.environ.get("RECORD_WORKLOADS"):
        write_recording(real)
    told = {name: differences(simulated[name], real[name]) for name in SCENARIOS}
    assert not any(told.values()), "\n".join(f"{name}: {text}" for name, text in told.items() if text)
