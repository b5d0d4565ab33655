"""Addresses of Endpoints and NetworkPolicies, which may have leading zeros."""

import pytest

from trio_sched.simulator.validation.core.endpoints import endpoints_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.networking import network_policy_problems

MANY = f"1.2.3.{'0' * 5000}4"
"""Python converts no numbers of so many digits."""


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (MANY, "1.2.3.4"),
        ("010.000.1.2", "10.0.1.2"),
        ("2001:db8::1", "2001:db8::1"),
        ("1.2.3.256", "None"),
        ("1.2.3.٤", "None"),
        ("fe80::1%eth0", "None"),
        ("1.2.3", "None"),
        ("", "None"),
    ],
)
def test_an_address_is_read(text: str, address: str) -> None:
    assert str(names.parse_address(text)) == address
    assert (names.ip_address(text) is None) is (address != "None")


def test_addresses_of_thousands_of_digits_are_taken_as_any() -> None:
    assert list(endpoints_problems({"subsets": [{"addresses": [{"ip": MANY}]}]})) == []
    block = {"cidr": f"{MANY}/8", "except": ["1.3.0.0/16", "2.0.0.0/16"]}
    (problem,) = network_policy_problems({"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": block}]}]}})
    assert problem.field == "spec.egress[0].to[0].ipBlock.except[1]"
