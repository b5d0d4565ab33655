import pytest

from trio_sched.simulator.validation.batch.jobs import job_spec_problems

_ERRORS = {
    "a": 'cannot convert string to integer for index: "a"',
    "1-": 'cannot convert string to integer for index: ""',
    "99999999999999999999": 'cannot convert string to integer for index: "99999999999999999999"',
    "0-1-2": 'the fragment "0-1-2" violates the requirement that an index interval can have at most two parts '
    "separated by '-'",
    "0-3": 'too large index: "3"',
    "2-1": "non-increasing order, previous: 2, current: 1",
    "0-1,1": "non-increasing order, previous: 1, current: 1",
}
"""What API server 1.36.2 says of a Job with three completions."""


def problems(indexes: str, **rule: int) -> list[str]:
    policy = {"rules": [{"succeededIndexes": indexes, **rule}]}
    spec = {"completions": 3, "completionMode": "Indexed", "successPolicy": policy}
    found = job_spec_problems(spec, "spec")
    return [f"{one.field}: {one.message}" for one in found if one.field.startswith("spec.successPolicy")]


@pytest.mark.parametrize("indexes", _ERRORS)
def test_indexes_that_are_none(indexes: str) -> None:
    where = "spec.successPolicy.rules[0].succeededIndexes"
    expected = f'{where}: Invalid value: "{indexes}": error parsing succeededIndexes: {_ERRORS[indexes]}'
    assert problems(indexes) == [expected]


@pytest.mark.parametrize(("indexes", "count", "limit"), [("0-1", 3, 2), ("a", 1, 0), ("", 1, 0)])
def test_no_more_successes_than_indexes(indexes: str, count: int, limit: int) -> None:
    what = "the number of indexes in the specified succeededIndexes field"
    found = problems(indexes, succeededCount=count)[-1]
    assert found.endswith(f"succeededCount: Invalid value: {count}: must be less than or equal to {limit} ({what})")


@pytest.mark.parametrize("indexes", ["", "0", "+1", "01", "0,2", "0-1,2"])
def test_indexes_that_may_be_named(indexes: str) -> None:
    assert problems(indexes) == []
