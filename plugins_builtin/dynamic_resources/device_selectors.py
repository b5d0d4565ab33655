"""CEL selectors of devices: compiled once, evaluated once for all devices that look the same to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping

from attrs import define, field

from plugins_builtin.dynamic_resources.search_effort import Effort, SelectorFailed
from trio_sched.plugin_api import DeviceModel, PoolDevice
from trio_sched.plugin_api.cel import (
    CompiledSelector,
    CompileError,
    EvaluationError,
    compile_device_selector,
    device_problem,
)

MAX_EXPRESSIONS = 2_000
"""Expressions that are kept, compiled and with what they came to."""
MAX_CHARACTERS = 1_000_000
"""The most characters of these expressions; a compiled one takes some hundred bytes per character."""
MAX_NOTES = 200
"""Expressions whose answers are noted with one model of devices."""
_PROBLEM = ("DynamicResources", "problem")
MAX_ANSWERS = 100_000
"""Answers that are kept of all expressions together."""
_WORK_PER_DEVICE = 10
"""What an evaluation costs in the time in which a device is tried."""
_CHARACTERS_PER_DEVICE = 4
"""What is compiled in that time."""


@define(eq=False)
class _Expression:
    """A compiled expression and its answers so far, by what it refers to of a device."""

    compiled: CompiledSelector | CompileError
    name: object = field(factory=object)
    """Under which its answers are noted with models; no other expression has it."""
    answers: dict[Hashable, bool | str] = field(factory=dict)
    """True, False, or the text of an error."""


@define(eq=False)
class DeviceSelectors:
    """The expressions of one scheduler."""

    list_attributes: bool = False
    """Gate DRAListTypeAttributes."""
    effort: Effort = field(factory=Effort)
    """What may be done for the pod whose turn it is."""
    _expressions: OrderedDict[str, _Expression] = field(factory=OrderedDict)
    _characters: int = 0
    _answers: int = 0

    def matches(self, expression: str, device: PoolDevice) -> bool:
        """Whether *expression* is true for *device*.

        Raises:
            SelectorFailed: it does not compile, or fails for this device.
            SearchTimedOut: it takes too long.
        """
        known = self._expressions.get(expression) or self._compile(expression)
        notes = device.model.notes
        answer: bool | str | None = notes.get(known.name)
        if answer is None:
            answer = self._judge(known, device.model)
            if len(notes) >= MAX_NOTES:
                notes.clear()
            notes[known.name] = answer
        if isinstance(answer, str):
            raise SelectorFailed(answer, is_runtime_error=not isinstance(known.compiled, CompileError))
        return answer

    def _judge(self, known: _Expression, model: DeviceModel) -> bool | str:
        """The answer about a model, or the text of the error."""
        compiled = known.compiled
        if isinstance(compiled, CompileError):
            return f"CEL compile error: {compiled}"
        if (problem := self.problem_of(model)) is not None:
            return f"CEL runtime error: {problem}"
        key = _key(compiled, model)
        answer = known.answers.get(key)
        if answer is None:
            self.effort.spend(0)
            found, work = compiled.judge(model.driver, model.device)
            answer = f"CEL runtime error: {found}" if isinstance(found, EvaluationError) else found
            if self._answers >= MAX_ANSWERS:
                self._drop_answers()
            self._answers += 1
            known.answers[key] = answer  # first, so that the next attempt of the pod gets further
            self.effort.spend(work // _WORK_PER_DEVICE)
        return answer

    def _compile(self, expression: str) -> _Expression:
        self.effort.spend(0)
        compiled: CompiledSelector | CompileError
        try:
            compiled = compile_device_selector(expression, list_attributes=self.list_attributes)
        except CompileError as error:
            compiled = error.with_traceback(None)
        known = self._expressions[expression] = _Expression(compiled)
        self._characters += len(expression)
        while len(self._expressions) > MAX_EXPRESSIONS or self._characters > MAX_CHARACTERS:
            oldest, dropped = self._expressions.popitem(last=False)
            self._characters -= len(oldest)
            self._answers -= len(dropped.answers)
        self.effort.spend(len(expression) // _CHARACTERS_PER_DEVICE)
        return known

    def _drop_answers(self) -> None:
        for one in self._expressions.values():
            one.answers.clear()
        self._answers = 0

    def problem_of(self, model: DeviceModel) -> str | None:
        """Why no selector can judge devices of *model*; found out once."""
        if _PROBLEM not in model.notes:
            problem = device_problem(model.driver, model.device, list_attributes=self.list_attributes)
            model.notes[_PROBLEM] = problem
        found: str | None = model.notes[_PROBLEM]
        return found


def _key(compiled: CompiledSelector, model: DeviceModel) -> Hashable:
    """Equal for devices for which the expression comes to the same."""
    references = compiled.references
    if references is None:
        return model
    key: list[Hashable] = []
    for reference in references:
        match reference.field:
            case "driver":
                key.append(model.driver)
            case "allowMultipleAllocations":
                key.append(model.device.allow_multiple_allocations)
            case "attributes":
                key.append(_part(model.device.attributes, reference.domain, reference.name, model.driver))
            case _:
                key.append(_part(model.device.capacity, reference.domain, reference.name, model.driver))
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
