from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from attrs import field, fields, frozen
from attrs import validators as v

from trio_sched.engine.hooks.plugin_errors import PluginArgsError
from trio_sched.engine.registry.plugin_args import plugin_args


@frozen(kw_only=True)
class Limit:
    resource: str
    at_most: int = 5


@frozen(kw_only=True)
class Args:
    seats: int = field(default=3, validator=[v.instance_of(int), v.ge(1)])
    wait_seconds: float = 1.5
    strict_mode: bool = False
    limits: tuple[Limit, ...] = ()
    by_zone: dict[str, int] = field(factory=dict)
    note: str | None = None
    zones: tuple[str, ...] = ()
    names: Sequence[str] | None = None
    racks: frozenset[str] = frozenset()
    pair: tuple[str, int] = ("", 0)
    anything: Any = None
    rows: list[list[int]] = field(factory=list)


class Plain:
    name: ClassVar[str] = "Plain"


class Configured:
    name: ClassVar[str] = "Configured"
    Args: ClassVar[type[Args]] = Args


def problems(given: Any) -> list[str]:
    with pytest.raises(PluginArgsError) as caught:
        plugin_args("Configured", Configured, given)
    assert str(caught.value).startswith("pluginConfig of 'Configured': ")
    return list(caught.value.problems)


def test_missing_arguments_have_their_defaults() -> None:
    assert plugin_args("Configured", Configured, None) == plugin_args("Configured", Configured, {}) == Args()


def test_keys_are_camel_case_and_values_nest() -> None:
    given = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "ConfiguredArgs",
        "seats": 4,
        "waitSeconds": 2,
        "strictMode": True,
        "limits": [{"resource": "cpu"}, {"resource": "gpu", "atMost": 1}],
        "byZone": {"a": 1},
        "note": "hello",
    }
    assert plugin_args("Configured", Configured, given) == Args(
        seats=4,
        wait_seconds=2.0,
        strict_mode=True,
        limits=(Limit(resource="cpu"), Limit(resource="gpu", at_most=1)),
        by_zone={"a": 1},
        note="hello",
    )


def test_collections_are_of_the_type_that_the_plugin_asks_for() -> None:
    given = {"zones": ["a"], "names": ["b"], "racks": ["c", "c"], "pair": ["d", 1], "rows": [[1], []], "anything": "ab"}
    assert plugin_args("Configured", Configured, given) == Args(
        zones=("a",), names=("b",), racks=frozenset("c"), pair=("d", 1), rows=[[1], []], anything="ab"
    )


def test_an_instance_is_used_as_it_is() -> None:
    made = Args(seats=9)
    assert plugin_args("Configured", Configured, made) is made


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"seats": "four"}, "args.seats: expected a whole number, got 'four'"),
        ({"seats": True}, "args.seats: expected a whole number, got True"),
        ({"waitSeconds": "1s"}, "args.waitSeconds: expected a number, got '1s'"),
        ({"strictMode": 1}, "args.strictMode: expected true or false, got 1"),
        ({"note": 5}, "args.note: expected a text, got 5"),
        ({"seats": 0}, "args.seats: must be >= 1: 0"),
        ({"seat": 1}, "args.seat: unknown field; did you mean 'seats'?"),
        ({"wait_seconds": 1}, "args.wait_seconds: unknown field; did you mean 'waitSeconds'?"),
        ({"limits": [{"atMost": 1}]}, "args.limits[0].resource: required field missing"),
        (
            {"limits": [{"resource": "cpu", "atMost": "x"}]},
            "args.limits[0].atMost: expected a whole number, got 'x'",
        ),
        ({"byZone": {"a_b": "x"}}, "args.byZone['a_b']: expected a whole number, got 'x'"),
        ({"zones": "eu-1"}, "args.zones: expected a list, got 'eu-1'"),
        ({"zones": {"eu-1": 1}}, "args.zones: expected a list, got {'eu-1': 1}"),
        ({"zones": None}, "args.zones: expected a list, got None"),
        ({"zones": ["a", 5]}, "args.zones[1]: expected a text, got 5"),
        ({"names": "eu-1"}, "args.names: expected a list, got 'eu-1'"),
        ({"racks": "ab"}, "args.racks: expected a list, got 'ab'"),
        ({"pair": "ab"}, "args.pair: expected a list, got 'ab'"),
        ({"pair": ["a"]}, "args.pair: expected a list of 2 items, got 1"),
        ({"pair": ["a", "b"]}, "args.pair[1]: expected a whole number, got 'b'"),
        ({"rows": [[1], "23"]}, "args.rows[1]: expected a list, got '23'"),
        ({"byZone": "ab"}, "args.byZone: expected a mapping, got 'ab'"),
        ({"byZone": [["a", 1]]}, "args.byZone: expected a mapping, got [['a', 1]]"),
        ({"limits": ["cpu"]}, "args.limits[0]: expected a mapping, got 'cpu'"),
        ({"seats": "x" * 100_000}, f"args.seats: expected a whole number, got '{'x' * 199}… (100002 characters)"),
        ([1], "args: expected a mapping, got list"),
        ({"limits": "abc"}, "args.limits: expected a list, got 'abc'"),
        ({"limits": {"resource": "cpu"}}, "args.limits: expected a list, got {'resource': 'cpu'}"),
        ({"limits": 5}, "args.limits: expected a list, got 5"),
        ({"byZone": "abc"}, "args.byZone: expected a mapping, got 'abc'"),
        ({"byZone": ["a"]}, "args.byZone: expected a mapping, got ['a']"),
    ],
)
def test_invalid_arguments_are_reported_with_their_path(given: Any, problem: str) -> None:
    (found,) = problems(given)
    assert found == problem


def test_all_problems_are_reported_at_once() -> None:
    assert len(problems({"seats": "x", "strictMode": "y", "nonsense": 1})) == 3


def test_a_plugin_without_arguments_takes_none() -> None:
    assert plugin_args("Plain", Plain, None) is None
    assert plugin_args("Plain", Plain, {"kind": "PlainArgs", "apiVersion": "x"}) is None
    with pytest.raises(PluginArgsError, match="the plugin takes no arguments; remove the entry"):
        plugin_args("Plain", Plain, {"seats": 1})


def test_a_text_is_not_a_list_of_letters() -> None:
    @frozen(kw_only=True)
    class Lists:
        zones: list[str] = field(factory=list)
        some: tuple[str, ...] = ()
        two: tuple[str, int] = ("a", 1)
        kinds: set[str] = field(factory=set)
        fixed: frozenset[str] = frozenset()
        sequence: Sequence[str] = ()
        optional: list[str] | None = None
        nested: dict[str, list[str]] = field(factory=dict)
        deep: list[list[str]] = field(factory=list)
        bare: list = field(factory=list)  # type: ignore[type-arg]  # plugins may leave it out

    class Listing(Configured):
        Args = Lists  # type: ignore[assignment]

    names = [a.name for a in fields(Lists)]
    for name in names:
        given = {"a": "abc"} if name == "nested" else ["abc"] if name == "deep" else "abc"
        with pytest.raises(PluginArgsError) as caught:
            plugin_args("Listing", Listing, {name: given})
        where = {"nested": "args.nested['a']", "deep": "args.deep[0]"}.get(name, f"args.{name}")
        assert caught.value.problems == (f"{where}: expected a list, got 'abc'",)
    read = plugin_args(
        "Listing",
        Listing,
        {
            "zones": ["a"],
            "some": ["a"],
            "two": ["x", 2],
            "kinds": ["k"],
            "fixed": ["f"],
            "sequence": ["s"],
            "optional": ["o"],
            "nested": {"n": ["m"]},
            "deep": [["d"]],
            "bare": [1],
        },
    )
    assert (read.zones, read.some, read.two, read.kinds) == (["a"], ("a",), ("x", 2), {"k"})
    assert (read.fixed, list(read.sequence), read.optional) == (frozenset({"f"}), ["s"], ["o"])
    assert (read.nested, read.deep, read.bare) == ({"n": ["m"]}, [["d"]], [1])
    assert plugin_args("Listing", Listing, {"optional": None}).optional is None
