"""An API server whose clock stands still."""

from datetime import UTC, datetime

import pytest
from simulator_api import Api

from trio_sched.simulator import ApiServer

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def server() -> ApiServer:
    return ApiServer(now=lambda: START)


@pytest.fixture
def api(server: ApiServer) -> Api:
    return Api(server)
