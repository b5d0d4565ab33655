"""Selectors: expressions that say whether a device can be used."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

from attrs import frozen

from trio_sched.cel.checking.environment import Environment
from trio_sched.cel.errors import CompileError, EvaluationError
from trio_sched.cel.planning.program import Program, compile_program
from trio_sched.cel.planning.references import Reference, references
from trio_sched.cel.values.quantity import CelQuantity, parse_quantity
from trio_sched.cel.values.semver import Semver, parse_semver
from trio_sched.cel.values.types import ANY, BOOL, DYN, STRING, Type, long_name, map_of
from trio_sched.cel.values.values import CelMap, Optional, Value, not_bool, type_name
from trio_sched.objects.resource.resource_slice import Device, DeviceAttribute

_DEVICE: Final = "device"
_DEVICE_TYPE: Final = Type("kubernetes.DRADevice")
_NO_DOMAIN: Final = CelMap({})
"""What domains are that a device does not have."""
_CACHED: Final = 4_096
_CACHED_CHARACTERS: Final = 100


@frozen(eq=False)
class CompiledSelector:
    """A selector that can be asked about devices."""

    expression: str
    references: frozenset[Reference] | None
    """What of a device its answer depends on; None: what cannot be enumerated."""
    program: Program
    list_attributes: bool = False

    def matches(self, driver: str, device: Device) -> bool:
        """Whether the device of *driver* can be used.

        Raises:
            EvaluationError: that cannot be decided; the text is what follows "CEL runtime error: ".
        """
        found = self.program.evaluate_one(device_value(driver, device, list_attributes=self.list_attributes))
        return found if type(found) is bool else _as_bool(found)

    def judge(self, driver: str, device: Device) -> tuple[bool | EvaluationError, int]:
        """What `matches` returns or raises, and how much was done for it: a million takes about a second."""
        try:
            outcome = self.program.outcome_one(device_value(driver, device, list_attributes=self.list_attributes))
        except EvaluationError as error:
            return error, 0
        if outcome.error is not None:
            return outcome.error, outcome.cost + outcome.work
        try:
            return _as_bool(outcome.value), outcome.cost + outcome.work
        except EvaluationError as error:
            return error, outcome.cost + outcome.work


def _as_bool(value: Value) -> bool:
    inner = value
    while type(inner) is Optional and not inner.is_none:
        inner = inner.value
    if type(inner) is bool:
        return inner
    raise EvaluationError(f"CEL result of type {type_name(value)} could not be converted to bool: {not_bool(inner)}")


@cache
def device_environment(*, list_attributes: bool) -> Environment:
    """What selectors can refer to; with *list_attributes* the gate DRAListTypeAttributes is on."""
    attribute = DYN if list_attributes else ANY
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, attribute)),
        "capacity": map_of(STRING, map_of(STRING, Type("kubernetes.Quantity"))),
        "allowMultipleAllocations": BOOL,
    }
    return Environment({_DEVICE: _DEVICE_TYPE}, {_DEVICE_TYPE.name: fields})


def compile_device_selector(expression: str, *, list_attributes: bool = False) -> CompiledSelector:
    """Compile a selector.

    Args:
        expression: the text in ``selectors[].cel.expression`` of a class or request.
        list_attributes: whether the gate DRAListTypeAttributes is on.

    Raises:
        CompileError: it is no selector; the text is what follows "CEL compile error: ".
    """
    accepted = (BOOL, ANY, DYN) if list_attributes else (BOOL, ANY)

    def check_type(found: Type) -> None:
        if found not in accepted:
            raise CompileError(f"must evaluate to bool or the unknown type, not {long_name(found)}")

    environment = device_environment(list_attributes=list_attributes)
    program = compile_program(expression, environment, check_type=check_type)
    return CompiledSelector(expression, references(program.checked, _DEVICE), program, list_attributes)


# --- devices as values -----------------------------------------------------------------------------------------------


def device_problem(driver: str, device: Device, *, list_attributes: bool) -> str | None:
    """Why no selector can decide about *device*; None if they can."""
    try:
        device_value(driver, device, list_attributes=list_attributes)
    except EvaluationError as error:
        return str(error)
    return None


def device_value(driver: str, device: Device, *, list_attributes: bool) -> CelMap:
    """*device* as the variable of an expression.

    Raises:
        EvaluationError: an attribute has no value, or one that is none of its kind.
    """
    attributes: dict[str, Value] = {}
    for name, attribute in (device.attributes or {}).items():
        try:
            value = _attribute_value(attribute, list_attributes)
        except EvaluationError as error:
            raise EvaluationError(f"attribute {name}: {error}") from error
        _domain(attributes, driver, name)[name[name.find("/") + 1 :]] = value
    capacity: dict[str, Value] = {}
    for name, one in (device.capacity or {}).items():
        try:
            text = str(one.value)
            quantity = _quantity(text) if len(text) < _CACHED_CHARACTERS else parse_quantity(text)
        except EvaluationError as error:
            raise EvaluationError(f"capacity {name}: {error}") from error
        _domain(capacity, driver, name)[name[name.find("/") + 1 :]] = quantity
    return CelMap(
        {
            "driver": driver,
            "attributes": CelMap(attributes, _NO_DOMAIN, has_text_keys=True),
            "capacity": CelMap(capacity, _NO_DOMAIN, has_text_keys=True),
            "allowMultipleAllocations": bool(device.allow_multiple_allocations),
        },
        has_text_keys=True,
    )


def _domain(domains: dict[str, Value], driver: str, name: str) -> dict[str, Value]:
    """What *name*, which may begin with a domain and a slash, is put into."""
    slash = name.find("/")
    domain = driver if slash < 0 else name[:slash]
    held = domains.get(domain)
    if held is None:
        held = domains[domain] = CelMap({}, has_text_keys=True)
    return held.entries


def _attribute_value(attribute: DeviceAttribute, list_attributes: bool) -> Value:
    if list_attributes:
        for values in (attribute.ints, attribute.bools, attribute.strings):
            if values is not None:
                return list(values)
        if attribute.versions is not None:
            return [_version(text) for text in attribute.versions]
    for value in (attribute.int_, attribute.bool_, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        return _version(attribute.version)
    raise EvaluationError("unsupported attribute value")


def _version(text: str) -> Semver:
    try:
        return _semver(text) if len(text) < _CACHED_CHARACTERS else parse_semver(text)
    except EvaluationError as error:
        raise EvaluationError(f"parse semantic version: {error}") from error


@lru_cache(maxsize=_CACHED)
def _semver(text: str) -> Semver:
    return parse_semver(text)


@lru_cache(maxsize=_CACHED)
def _quantity(text: str) -> CelQuantity:
    return parse_quantity(text)
