import pytest

from trio_sched.config.durations import parse_duration
from trio_sched.config.errors import ConfigError


def test_a_duration_of_a_configuration_is_read_or_refused_as_part_of_it() -> None:
    assert parse_duration("1m30s") == 90_000_000_000
    with pytest.raises(ConfigError, match='time: missing unit in duration "15"') as caught:
        parse_duration("15")
    assert [problem.path for problem in caught.value.problems] == [""]
