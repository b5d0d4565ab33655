import sys
from functools import lru_cache
from pathlib import Path

import pytest

from trio_sched.daemon.serving.tls import certificates
from trio_sched.daemon.serving.tls.self_signed import self_signed

sys.path.insert(
    0, str(Path(__file__).parent)
)  # for what the tests of this folder share; importlib mode has no siblings

_same_pair = lru_cache(self_signed)


@pytest.fixture(autouse=True)
def _one_pair_for_all_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generating keys takes longer than what is tested."""
    monkeypatch.setattr(certificates, "self_signed", _same_pair)
