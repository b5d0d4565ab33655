from trio_sched.simulator.validation.meta.names import ip_address

MANY = f"1.2.3.{'0' * 5000}4"
"""Python converts no numbers of so many digits."""


def test_addresses_are_known_and_may_have_leading_zeros() -> None:
    addresses = (MANY, "010.000.1.2", "2001:db8::1")
    others = ("1.2.3.256", "1.2.3.٤", "fe80::1%eth0", "1.2.3", "")
    assert [text for text in (*addresses, *others) if ip_address(text) is None] == [*addresses]
