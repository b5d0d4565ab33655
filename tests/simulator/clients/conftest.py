"""One simulated cluster for all tests of a file; what a test makes lies in a namespace of its own."""

from collections.abc import Iterator
from itertools import count

import pytest
from simulator_thread import Simulator, simulator_in_thread

from trio_sched.simulator.registry.lifecycle import create

_numbers = count()


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with simulator_in_thread() as running:
        yield running


@pytest.fixture
def namespace(simulator: Simulator) -> str:
    name = f"shop-{next(_numbers)}"
    simulator.call(make_namespace, simulator, name)
    return name


def make_namespace(simulator: Simulator, name: str) -> None:
    state = simulator.server.state
    create(state, state.types.core("namespaces"), "", {"metadata": {"name": name}})
