"""CEL selectors of devices: compiled once, evaluated once for all devices that look the same to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping

from attrs import define, field

from plugins_builtin._device_allocator import SelectorFailed
from trio_sched.plugin_api import PoolDevice
from trio_sched.plugin_api.cel import (
    CompiledSelector,
    CompileError,
    EvaluationError,
    Reference,
    compile_device_selector,
    device_problem,
)

MAX_EXPRESSIONS = 1000
"""Expressions that are kept, compiled and with what they came to."""
MAX_ANSWERS = 10_000
"""Answers that are kept of one expression."""
_PROBLEM = "_selector_problem"


@define(eq=False)
class _Expression:
    """A compiled expression and its answers so far, by what it refers to of a device."""

    compiled: CompiledSelector
    answers: dict[Hashable, bool | str] = field(factory=dict)
    """True, False, or the text of a run-time error."""


@define(eq=False)
class DeviceSelectors:
    """The expressions of one scheduler."""

    list_attributes: bool = False
    """Gate DRAListTypeAttributes."""
    _expressions: OrderedDict[str, _Expression] = field(factory=OrderedDict)
    _good: set[str | int | float] = field(factory=set)
    """Versions and quantities that are some."""

    def matches(self, expression: str, device: PoolDevice) -> bool:
        """Whether *expression* is true for *device*.

        Raises:
            SelectorFailed: it does not compile, or fails for this device.
        """
        known = self._expressions.get(expression) or self._compile(expression)
        if (problem := self.problem_of(device)) is not None:
            raise SelectorFailed(f"CEL runtime error: {problem}")
        key = _key(known.compiled, device)
        answer = known.answers.get(key)
        if answer is None:
            try:
                answer = known.compiled.matches(device.id.driver, device.device)
            except EvaluationError as error:
                answer = str(error)
            if len(known.answers) >= MAX_ANSWERS:
                known.answers.clear()
            known.answers[key] = answer
        if isinstance(answer, str):
            raise SelectorFailed(f"CEL runtime error: {answer}")
        return answer

    def references(self, expressions: Iterable[str]) -> frozenset[Reference] | None:
        """What of a device *expressions* refer to; None if that cannot be enumerated.

        Raises:
            SelectorFailed: one of them does not compile.
        """
        found: set[Reference] = set()
        for expression in expressions:
            known = self._expressions.get(expression) or self._compile(expression)
            references = known.compiled.references
            if references is None or any(
                one.field in ("attributes", "capacity") and not one.name for one in references
            ):
                return None
            found |= references
        return frozenset(found)

    def _compile(self, expression: str) -> _Expression:
        try:
            compiled = compile_device_selector(expression, list_attributes=self.list_attributes)
        except CompileError as error:
            raise SelectorFailed(f"CEL compile error: {error}") from error
        known = self._expressions[expression] = _Expression(compiled)
        if len(self._expressions) > MAX_EXPRESSIONS:
            self._expressions.popitem(last=False)
        return known

    def problem_of(self, device: PoolDevice) -> str | None:
        """Why no selector can judge *device*."""
        good = self._good
        for attribute in (device.device.attributes or {}).values():
            if attribute.string is not None or attribute.int_ is not None or attribute.bool_ is not None:
                continue
            if attribute.version is None or attribute.version not in good:
                return self._looked_up_problem(device)
        for capacity in (device.device.capacity or {}).values():
            if capacity.value not in good:
                return self._looked_up_problem(device)
        return None

    def _looked_up_problem(self, device: PoolDevice) -> str | None:
        if _PROBLEM not in device.__dict__:
            problem = device_problem(device.id.driver, device.device, list_attributes=self.list_attributes)
            device.__dict__[_PROBLEM] = problem
            if problem is None:
                if len(self._good) > MAX_ANSWERS:
                    self._good.clear()
                self._good.update(one.version for one in (device.device.attributes or {}).values() if one.version)
                self._good.update(one.value for one in (device.device.capacity or {}).values())
        found: str | None = device.__dict__[_PROBLEM]
        return found


def _key(compiled: CompiledSelector, device: PoolDevice) -> Hashable:
    """Equal for devices for which the expression comes to the same."""
    references = compiled.references
    if references is None:
        return device  # by identity: a device that has changed is another object
    key: list[Hashable] = []
    for reference in references:
        match reference.field:
            case "driver":
                key.append(device.id.driver)
            case "allowMultipleAllocations":
                key.append(device.device.allow_multiple_allocations)
            case "attributes":
                key.append(_part(device.device.attributes, reference.domain, reference.name, device.id.driver))
            case _:
                key.append(_part(device.device.capacity, reference.domain, reference.name, device.id.driver))
    return tuple(key)


def _part(entries: Mapping[str, object] | None, domain: str, name: str, driver: str) -> Hashable:
    """What a reference sees of attributes or capacities."""
    if not entries:
        return None
    if name:
        found = _hashable(entries.get(f"{domain}/{name}"))
        return (found, _hashable(entries.get(name))) if domain == driver else found
    prefix = f"{domain}/"
    return tuple(
        sorted(
            (key, repr(one))
            for key, one in entries.items()
            if key.startswith(prefix) or (domain == driver and "/" not in key)
        )
    )


def _hashable(one: object) -> Hashable:
    """An attribute, or of a capacity its value, which is all that an expression sees of it."""
    return getattr(one, "value", one)
