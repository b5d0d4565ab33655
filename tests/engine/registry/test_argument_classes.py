import dataclasses
import datetime
import enum
import math
import tracemalloc
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NewType

import attrs
import jsonschema
import msgspec
import pytest
from attrs import Factory, field, frozen
from attrs import validators as v

from trio_sched.engine.hooks.plugin_errors import BadPlugin, PluginArgsError
from trio_sched.engine.registry.argument_classes import UnreadableArgs, record_of
from trio_sched.engine.registry.plugin_args import args_schema, plugin_args, written_args
from trio_sched.engine.registry.plugin_registry import check_contract
from trio_sched.plugin_api import (
    Duration,
    LabelSelector,
    MilliQuantity,
    NodeSelector,
    Taint,
    Toleration,
    WholeQuantity,
    hookimpl,
)


class Mode(enum.Enum):
    SOFT = "soft"
    HARD = "hard"


@frozen(kw_only=True)
class ByLabel:
    """Nodes by a label."""

    kind: Literal["label"] = "label"
    key: str
    """The key of the label."""


@frozen(kw_only=True)
class ByName:
    kind: Literal["name"] = "name"
    names: tuple[str, ...] = field(validator=v.min_len(1))


@dataclasses.dataclass(frozen=True)
class Window:
    start_time: datetime.time
    length: datetime.timedelta = datetime.timedelta(hours=1)
    days: tuple[str, ...] = dataclasses.field(default=(), metadata={"name": "weekdays", "description": "Its days."})


class Step(msgspec.Struct, frozen=True, rename="camel"):
    at_share: Annotated[int, msgspec.Meta(ge=0, le=100, description="In percent.")]
    next_step: "Step | None" = None


class Cat(msgspec.Struct, tag=True):
    lives: int = 9


class Dog(msgspec.Struct, tag=True):
    name: str


Team = NewType("Team", str)


@frozen(kw_only=True)
class Args:
    """What this plugin can be told."""

    grace: Duration = 90.0
    """How long to wait."""
    memory: WholeQuantity = 0
    cpu: MilliQuantity = 500
    mode: Mode = Mode.SOFT
    level: Literal[1, 2, "all"] = 1
    count: int | Literal["auto"] = "auto"
    ratio: float = field(default=0.5, validator=[v.ge(0), v.le(1)])
    where: ByLabel | ByName | None = None
    windows: tuple[Window, ...] = ()
    steps: list[Step] = field(factory=list)
    pet: Cat | Dog | str = "none"
    selector: LabelSelector = field(factory=LabelSelector)
    nodes: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    taint: Taint | None = None
    teams: dict[Team, int] = field(factory=dict)
    by_mode: Mapping[Mode, str] = field(factory=dict)
    lower: int = 0
    upper: int = field(default=10)

    @upper.validator
    def _above_lower(self, _attribute: Any, value: int) -> None:
        if value < self.lower:
            raise ValueError(f"'upper' must be at least lower ({self.lower})")


class Plugin:
    name: ClassVar[str] = "Plugin"
    Args: ClassVar[type[Any]] = Args

    def __init__(self, args: Any, handle: Any) -> None: ...

    @hookimpl
    def permit(self, pod: Any) -> None: ...


def read(**given: Any) -> Any:
    return plugin_args("Plugin", Plugin, given)


def problems(**given: Any) -> list[str]:
    with pytest.raises(PluginArgsError) as caught:
        read(**given)
    return list(caught.value.problems)


EVERYTHING: dict[str, Any] = {
    "grace": "1m30s",
    "memory": "1Gi",
    "cpu": "1500m",
    "mode": "hard",
    "level": "all",
    "count": 3,
    "ratio": 1,
    "where": {"kind": "label", "key": "zone"},
    "windows": [{"startTime": "22:30", "length": "8h", "weekdays": ["mon"]}],
    "steps": [{"atShare": 5, "nextStep": {"atShare": 100}}],
    "pet": {"type": "Dog", "name": "Rex"},
    "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]},
    "nodes": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Gt", "values": ["5"]}]}]},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "taint": {"key": "gpu", "effect": "NoSchedule"},
    "teams": {"a": 1},
    "byMode": {"soft": "x"},
    "lower": 3,
    "upper": 4,
}


def test_every_type_is_read() -> None:
    args = read(**EVERYTHING)
    assert (args.grace, args.memory, args.cpu) == (90.0, 2**30, 1500)
    assert (args.mode, args.level, args.count, args.ratio) == (Mode.HARD, "all", 3, 1.0)
    assert args.where == ByLabel(key="zone")
    assert args.windows == (Window(datetime.time(22, 30), datetime.timedelta(hours=8), ("mon",)),)
    assert args.steps == [Step(at_share=5, next_step=Step(at_share=100))]
    assert args.pet == Dog(name="Rex")
    assert args.selector.match_labels == {"a": "b"}
    assert args.nodes.node_selector_terms[0].match_expressions[0].operator == "Gt"
    assert args.tolerations[0].effect == "NoSchedule"
    assert args.by_mode == {Mode.SOFT: "x"}


def test_what_was_read_can_be_written_and_read_again() -> None:
    for args in (Args(), read(**EVERYTHING)):
        written = written_args(Plugin, args)
        assert read(**written) == args
        jsonschema.validate(written, args_schema("Plugin", Plugin))
    assert written_args(Plugin, read(**EVERYTHING))["windows"] == [
        {"startTime": "22:30", "length": "8h0m0s", "weekdays": ["mon"]}
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"grace": "90"}, "args.grace: expected a duration: 90s, 5m or 1h30m for instance, got '90': time: missing"),
        ({"grace": True}, "args.grace: expected a duration: 90s, 5m or 1h30m for instance, got True"),
        ({"memory": "8Gb"}, "args.memory: expected a quantity: 8Gi, 500M or 3 for instance, got '8Gb': quantities"),
        ({"mode": "medium"}, "args.mode: expected 'soft' or 'hard', got 'medium'"),
        ({"level": True}, "args.level: expected 1, 2 or 'all', got True"),
        ({"count": "many"}, "args.count: expected 'auto', got 'many'"),
        ({"count": 1.5}, "args.count: expected a whole number or 'auto', got 1.5"),
        ({"ratio": 2}, "args.ratio: must be <= 1: 2.0"),
        ({"ratio": math.nan}, "args.ratio: nan is no finite number"),
        ({"ratio": 10**400}, "args.ratio: 1000"),
        ({"where": {"kind": "lable"}}, "args.where.kind: expected 'label' or 'name', got 'lable'"),
        ({"where": {"key": "x"}}, "args.where.kind: required field missing: 'label' or 'name'"),
        ({"where": {"kind": "label", "keys": "x", "key": "y"}}, "args.where.keys: unknown field; did you mean 'key'?"),
        ({"where": {"kind": "name", "names": []}}, "args.where.names: Length of 'names' must be >= 1: 0"),
        ({"windows": [{"startTime": "9:30"}]}, "args.windows[0].startTime: expected a time of day: 22:30 for"),
        ({"windows": [{"startTime": "22:30", "weekday": []}]}, "args.windows[0].weekday: unknown field; did you mean"),
        ({"steps": [{"atShare": 101}]}, "args.steps[0].atShare: Expected `int` <= 100, got 101"),
        ({"pet": {"type": "Cow"}}, "args.pet.type: expected 'Cat' or 'Dog', got 'Cow'"),
        ({"pet": 4}, "args.pet: expected a text or a mapping, got 4"),
        ({"teams": {"a": "x"}}, "args.teams['a']: expected a whole number, got 'x'"),
        ({"byMode": {"loud": "x"}}, "args.byMode['loud']: expected 'soft' or 'hard', got 'loud'"),
        ({"lower": 5, "upper": 4}, "args.upper: must be at least lower (5)"),
        ({"selector": {"matchLabel": {}}}, "args.selector.matchLabel: unknown field; did you mean 'matchLabels'?"),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}},
            'args.selector.matchExpressions[0].operator: Invalid value: "in": not a valid selector operator',
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "args.selector.matchExpressions[0].values: Required value: must be specified when `operator` is",
        ),
        ({"selector": {"matchLabels": {"a b": "c"}}}, 'args.selector.matchLabels: Invalid value: "a b": name part'),
        ({"nodes": {}}, "args.nodes.nodeSelectorTerms: Required value: must have at least one node selector term"),
        (
            {"nodes": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Gt", "values": ["x"]}]}]}},
            "args.nodes.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value",
        ),
        ({"tolerations": [{"effect": "NoSchedule"}]}, 'args.tolerations[0].operator: Invalid value: "": operator must'),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "args.tolerations[0].effect: Unsupported value"),
        ({"taint": {"key": "a", "effect": ""}}, "args.taint.effect: Unsupported value"),
    ],
)
def test_each_problem_has_its_path(given: dict[str, Any], problem: str) -> None:
    (found,) = problems(**given)
    assert found.startswith(problem)


def test_validators_all_have_their_say() -> None:
    found = problems(ratio=7, lower=5, upper=1, grace="x", windows=[{"startTim": 1}], nope=1)
    assert [one.split(":")[0] for one in found] == [
        "args.nope",
        "args.grace",
        "args.windows[0].startTim",
        "args.windows[0].startTime",
        "args.ratio",
        "args.upper",
    ]


def test_classes_without_a_discriminator_are_told_apart_by_their_keys() -> None:
    @frozen
    class Fixed:
        seconds: int

    @frozen
    class Spread:
        least: int
        most: int

    @frozen
    class Either:
        wait: Fixed | Spread

    class Waiting:
        Args = Either

    assert plugin_args("W", Waiting, {"wait": {"least": 1, "most": 2}}).wait == Spread(1, 2)
    assert plugin_args("W", Waiting, {"wait": {"seconds": 1}}).wait == Fixed(1)
    with pytest.raises(PluginArgsError, match=r"args\.wait\.most: expected a whole number, got 'x'"):
        plugin_args("W", Waiting, {"wait": {"least": 1, "most": "x"}})


def raising(error: BaseException) -> Any:
    def validate(*_args: Any) -> None:
        raise error

    return validate


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), BaseExceptionGroup("g", [SystemExit(3)])])
def test_whatever_a_validator_raises_is_a_problem_of_its_field(error: BaseException) -> None:
    @frozen
    class Odd:
        first: int = field(validator=raising(error))

    with pytest.raises(PluginArgsError, match=rf"(?s)args\.first: .*{type(error).__name__}"):
        plugin_args("O", type("O", (), {"Args": Odd}), {"first": 2})


def test_a_default_that_cannot_be_made_is_an_error_also_beside_one_that_is_validated() -> None:
    @frozen
    class Odd:
        first: int = field(default=1, validator=v.ge(0))
        broken: int = field(factory=lambda: 1 // 0)

    with pytest.raises(UnreadableArgs, match=r"Odd\.broken: its default cannot be made: ZeroDivisionError"):
        record_of(Odd)


@pytest.mark.parametrize(("annotation", "default", "means"), [(Duration, "5m", "300.0"), (MilliQuantity, "2", "2000")])
def test_a_default_in_the_notation_of_the_file_is_an_error(annotation: Any, default: str, means: str) -> None:
    wrong = attrs.make_class("Wrong", {"a": field(default=default, type=annotation)}, frozen=True)
    tracemalloc.start()
    with pytest.raises(UnreadableArgs, match=rf"Wrong\.a: write {means}, which is what '{default}' means"):
        record_of(wrong)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_what_a_constructor_raises_is_a_problem_of_its_class() -> None:
    @frozen
    class Strange:
        first: int = 1

        def __attrs_post_init__(self) -> None:
            if self.first == 2:
                raise ValueError("two is not allowed")
            if self.first == 3:
                raise SystemExit(3)

    class Odd:
        Args = Strange

    with pytest.raises(PluginArgsError, match="args: two is not allowed"):
        plugin_args("O", Odd, {"first": 2})
    with pytest.raises(PluginArgsError, match="args: SystemExit: 3"):
        plugin_args("O", Odd, {"first": 3})


def test_a_class_that_cannot_be_read_is_named_when_the_plugin_is_loaded() -> None:
    def refusal(args: type[Any]) -> str:
        with pytest.raises(BadPlugin) as caught:
            check_contract("Plugin", "somewhere", type("Sub", (Plugin,), {"Args": args}))
        return caught.value.problem

    @frozen
    class Complex:
        values: list[complex]

    @frozen
    class BadDefault:
        seats: int = "three"  # type: ignore[assignment]

    @frozen
    class OutOfBounds:
        seats: int = field(default=0, validator=v.ge(1))

    @frozen
    class Raising:
        seats: int = Factory(lambda: 1 // 0)

    @frozen
    class Unknown:
        seats: "NoSuchType"  # type: ignore[name-defined]  # noqa: F821

    @frozen
    class Twice:
        a_b: int = 1
        aB: int = 2

    @frozen
    class Keys:
        by: dict[float, int] = field(factory=dict)

    assert refusal(Complex).startswith("its Args: args.values[]: values of the type complex cannot be read")
    assert refusal(BadDefault) == "its Args: BadDefault.seats: expected a whole number, got 'three' (the default)"
    assert refusal(OutOfBounds).endswith("must be >= 1: 0 (the default)")
    assert "Raising.seats: its default cannot be made: ZeroDivisionError" in refusal(Raising)
    assert "annotations of Unknown cannot be evaluated: NameError" in refusal(Unknown)
    assert "args.aB: two attributes of Twice have this name" in refusal(Twice)
    assert "the keys of a mapping must be texts" in refusal(Keys)
    assert "must be a class of attrs, a dataclass or a msgspec.Struct" in refusal(int)
    check_contract("Plugin", "somewhere", Plugin)


def test_constraints_of_msgspec_hold_for_lists_of_classes_too() -> None:
    @frozen
    class Constrained:
        names: Annotated[tuple[ByName, ...], msgspec.Meta(min_length=1, max_length=2)]
        by: Annotated[dict[str, ByName], msgspec.Meta(max_length=1)] = field(factory=dict)

    class Some:
        Args = Constrained

    entry = {"names": ["a"]}
    assert plugin_args("Some", Some, {"names": [entry]}).names == (ByName(names=("a",)),)
    with pytest.raises(PluginArgsError, match=r"args\.names: Expected `array` of length <= 2"):
        plugin_args("Some", Some, {"names": [entry] * 3})
    with pytest.raises(PluginArgsError, match=r"args\.by: Expected `object` of length <= 1"):
        plugin_args("Some", Some, {"names": [entry], "by": {"a": entry, "b": entry}})
    assert args_schema("Some", Some)["properties"]["names"]["maxItems"] == 2

    @frozen
    class Wrong:
        one: Annotated[ByName, msgspec.Meta(max_length=1)]

    with pytest.raises(UnreadableArgs, match="can constrain numbers, texts, lists and mappings only"):
        record_of(Wrong)


def test_thousands_of_unknown_fields_are_not_all_looked_up() -> None:
    assert len(problems(**{f"graceful{number}": 1 for number in range(100_000)})) == 100


def test_recursive_classes_end() -> None:
    record = record_of(Step)
    found: list[str] = []
    record.read({"atShare": 1, "nextStep": {"atShare": "x"}}, "args", found)
    assert found == ["args.nextStep.atShare: expected a whole number, got 'x'"]


def test_the_schema_describes_and_judges_as_the_reader_does() -> None:
    schema = args_schema("Plugin", Plugin)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["description"] == "What this plugin can be told."
    assert schema["properties"]["grace"]["description"] == "How long to wait."
    assert schema["properties"]["grace"]["default"] == "1m30s"
    assert schema["properties"]["ratio"]["maximum"] == 1
    assert schema["properties"]["mode"] == {"enum": ["soft", "hard"], "default": "soft"}
    assert schema["$defs"]["ByLabel"]["properties"]["key"]["description"] == "The key of the label."
    assert schema["$defs"]["Window"]["properties"]["weekdays"]["description"] == "Its days."
    assert schema["$defs"]["Step"]["properties"]["atShare"]["maximum"] == 100
    assert schema["additionalProperties"] is False
    jsonschema.validate(EVERYTHING, schema)
    jsonschema.validate({"apiVersion": "x", "kind": "y"}, schema)
    for wrong in (
        {"gracee": "90s"},
        {"grace": "90 s"},
        {"memory": "8Gb"},
        {"mode": "medium"},
        {"where": {"kind": "label"}},
        {"windows": [{"startTime": "9:30"}]},
        {"steps": [{"atShare": 101}]},
        {"pet": {"type": "Cow"}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
        assert problems(**wrong)


def test_a_plugin_without_arguments_has_a_schema_that_takes_none() -> None:
    class Plain:
        name = "Plain"

    schema = args_schema("Plain", Plain)
    jsonschema.validate({}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"x": 1}, schema)


def test_args_of_unreadable_types_say_so_also_where_nothing_was_checked() -> None:
    @frozen
    class Complex:
        value: complex

    class Unchecked:
        Args = Complex

    with pytest.raises(PluginArgsError, match="values of the type complex"):
        plugin_args("Unchecked", Unchecked, {})
    with pytest.raises(UnreadableArgs):
        args_schema("Unchecked", Unchecked)
