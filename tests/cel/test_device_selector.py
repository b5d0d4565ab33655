"""Selectors: what they answer about a device, why they cannot, and what of the device they depend on."""

import pytest
from cel_cases import DEVICE, DRIVER
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trio_sched.cel.device_selector import CompiledSelector, compile_device_selector, device_problem
from trio_sched.cel.errors import CompileError, EvaluationError
from trio_sched.cel.planning.references import Reference
from trio_sched.objects.resource.resource_slice import Device, DeviceAttribute, DeviceCapacity

A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'device.driver == "{DRIVER}" && {A}.model == "A" && {C}.memory.compareTo(quantity("40Gi")) >= 0', True),
        (f'device.driver == "other" && {A}.model == "A"', False),
        (f"{A}.healthy", True),
        (f"{A}.index == 2", True),
        ('device.attributes["other.example.com"].rack == "r7"', True),
        (f'{A}.firmware.isGreaterThan(semver("3.0.0"))', True),
        ("device.allowMultipleAllocations", False),
        ('"model" in device.attributes["nope"]', False),
    ],
)
def test_a_selector_is_true_or_false_for_a_device(expression: str, expected: bool) -> None:
    assert compile_device_selector(expression).matches(DRIVER, DEVICE) is expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (f"{A}.absent", "no such key: absent"),
        (
            f"{A}.model",
            "CEL result of type string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
        ),
        (
            f"{A}.index",
            "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool",
        ),
        (
            f"{A}.firmware",
            "CEL result of type kubernetes.Semver could not be converted to bool: "
            "type conversion error from 'Semver' to 'bool'",
        ),
        (f"{A}.index + 1 == 2 || {A}.model", "no such overload"),
    ],
)
def test_what_cannot_be_decided_is_an_error(expression: str, problem: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        compile_device_selector(expression).matches(DRIVER, DEVICE)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        (f"dyn({A}.healthy)", "must evaluate to bool or the unknown type, not dyn"),
        (f"optional.of({A}.x)", "must evaluate to bool or the unknown type, not optional_type(google.protobuf.Any)"),
        ("timestamp", "must evaluate to bool or the unknown type, not type(google.protobuf.Timestamp)"),
        ('int("x") == 1', "program instantiation failed: type conversion error from 'string' to 'int'"),
        ("type(device) == timestamp", "program instantiation failed: reference to undefined type: timestamp"),
        (
            "device.nope",
            "compilation failed: ERROR: <input>:1:7: undefined field 'nope'\n | device.nope\n | ......^",
        ),
    ],
)
def test_what_is_no_selector_is_refused(expression: str, problem: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_device_selector(expression)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("device", "problem"),
    [
        (DEVICE, None),
        (Device(), None),
        (
            Device(attributes={"v": DeviceAttribute(version="v1.2.3")}),
            'attribute v: parse semantic version: Invalid character(s) found in major number "v1"',
        ),
        (
            Device(attributes={"other.example.com/v": DeviceAttribute()}),
            "attribute other.example.com/v: unsupported attribute value",
        ),
        (Device(attributes={"l": DeviceAttribute(ints=(1,))}), "attribute l: unsupported attribute value"),
        (
            Device(capacity={"memory": DeviceCapacity(value="lots")}),
            "capacity memory: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_a_device_with_a_bad_value_cannot_be_judged_by_any_selector(device: Device, problem: str | None) -> None:
    assert device_problem(DRIVER, device, list_attributes=False) == problem
    selector = compile_device_selector("true")
    if problem is None:
        assert selector.matches(DRIVER, device)
    else:
        with pytest.raises(EvaluationError) as caught:
            selector.matches(DRIVER, device)
        assert str(caught.value) == problem


def test_list_attributes_are_lists_only_with_their_gate() -> None:
    device = Device(attributes={"links": DeviceAttribute(ints=(1, 2), string="x"), "none": DeviceAttribute(strings=())})
    assert device_problem(DRIVER, device, list_attributes=True) is None
    for expression in (
        f"{A}.links[1] == 2",
        f"{A}.links.includes(2)",
        f"{A}.none.size() == 0",
        f"dyn({A}.links == [1, 2])",
    ):
        assert compile_device_selector(expression, list_attributes=True).matches(DRIVER, device)
    versions = Device(attributes={"v": DeviceAttribute(versions=("1.0.0", "2"))})
    assert device_problem(DRIVER, versions, list_attributes=True) == (
        "attribute v: parse semantic version: No Major.Minor.Patch elements found"
    )


def refer(*parts: tuple[str, ...]) -> frozenset[Reference]:
    return frozenset(Reference(*part, *[""] * (3 - len(part))) for part in parts)


MODEL, DOMAIN = ("attributes", DRIVER, "model"), ("attributes", DRIVER, "")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", refer()),
        ('device.driver == "x" || device.allowMultipleAllocations', refer(("driver",), ("allowMultipleAllocations",))),
        (f'{A}.model == "A"', refer(MODEL)),
        (f'{A}["model"] == "A"', refer(MODEL)),
        (f'has({A}.model) && {A}.?model.orValue("") == "A" && {A}[?"model"].hasValue()', refer(MODEL)),
        (f'"model" in {A}', refer(MODEL)),
        (f'cel.bind(a, {A}, a.model == "A" || "index" in a)', refer(MODEL, ("attributes", DRIVER, "index"))),
        (f'device.attributes[?"{DRIVER}"].optMap(a, a.model == "A").orValue(false)', refer(DOMAIN, MODEL)),
        (f'{A}.model == "A" && sign({C}.memory) == 1', refer(MODEL, ("capacity", DRIVER, "memory"))),
        (f"{A}.exists(k, v, v == 1)", refer(DOMAIN)),
        (f"{A}.size() > 1", refer(DOMAIN)),
        (f"{A}[device.driver] == 1", refer(DOMAIN, ("driver",))),
        (f'["a"].exists(k, {A}[k] == 1)', refer(DOMAIN)),
        (f'"{DRIVER}" in device.attributes', refer(DOMAIN)),
        ("device.attributes.exists(d, true)", None),
        ("device.attributes[device.driver].model == 1", None),
        ('["a"].exists(d, device.attributes[d].x == 1)', None),
        ('[device].all(d, d.driver == "x")', None),
        ("device == device", None),
        ('["a"].exists(device, device == "a")', refer()),
        (f'(true ? {A} : {A}).model == "A"', refer(DOMAIN)),
    ],
)
def test_what_a_selector_depends_on(expression: str, expected: frozenset[Reference] | None) -> None:
    assert compile_device_selector(expression).references == expected


_EXPRESSIONS = (
    f'{A}.?model.orValue("none") == "A"',
    f'"index" in {A} && {A}.index > 1',
    f'cel.bind(a, {A}, has(a.healthy) ? a.healthy : "model" in a)',
    f'{A}.all(k, v, v != "A")',
    f'{C}.?memory.optMap(m, m.compareTo(quantity("40Gi")) > 0).orValue(false)',
    'device.driver == "b" || device.allowMultipleAllocations',
)


@given(
    st.sampled_from(_EXPRESSIONS),
    st.dictionaries(
        st.sampled_from(["model", "index", "healthy", "other", "x.example.com/model"]),
        st.sampled_from([DeviceAttribute(string="A"), DeviceAttribute(int_=2), DeviceAttribute(bool_=True)]),
    ),
    st.booleans(),
)
def test_nothing_but_the_references_matters(
    expression: str, attributes: dict[str, DeviceAttribute], many: bool
) -> None:
    selector = compile_device_selector(expression)
    assert selector.references is not None
    device = replace(DEVICE, attributes=attributes, allow_multiple_allocations=many)
    kept = {(one.domain, one.name) for one in selector.references if one.field == "attributes"}
    reduced = replace(
        device, attributes={name: one for name, one in attributes.items() if {(DRIVER, name), (DRIVER, "")} & kept}
    )
    assert outcome_of(selector, device) == outcome_of(selector, reduced)


def outcome_of(selector: CompiledSelector, device: Device) -> bool | str:
    try:
        return selector.matches(DRIVER, device)
    except EvaluationError as error:
        return str(error)
