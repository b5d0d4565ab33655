from collections.abc import Callable, Mapping

import pytest

from trio_sched.config.expansion import Expanded, expand_profiles
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.legacy import Conversion, OldStart, convert_start, read_legacy_configuration
from trio_sched.config.load import load_configuration

Convert = Callable[..., Conversion]
Expand = Callable[..., list[Expanded]]
GROUP = "kubescheduler.config.k8s.io"


@pytest.fixture
def convert() -> Convert:
    """Converts a component configuration from the last part of its version and its body."""

    def run(version: str, body: str, policy: str | None = None) -> Conversion:
        api_version = version if "/" in version else f"{GROUP}/{version}"
        text = f"apiVersion: {api_version}\nkind: KubeSchedulerConfiguration\n{body}"
        legacy = read_legacy_configuration(text)
        assert legacy is not None
        return legacy.convert(policy)

    return run


@pytest.fixture
def convert_policy() -> Convert:
    """Converts a policy."""

    def run(policy: str) -> Conversion:
        return convert_start(OldStart(policy=policy), FlagOverrides())

    return run


@pytest.fixture
def expand() -> Expand:
    """Says what runs at each point under the text of a conversion: the way of every v1 document."""

    def run(conversion: Conversion, others: Mapping[str, str] = {}) -> list[Expanded]:
        points = {**KNOWN_PLUGINS, **{name: frozenset(at.split()) for name, at in others.items()}}
        return list(expand_profiles(load_configuration(conversion.text()).profiles, points))

    return run
