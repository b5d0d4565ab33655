"""Replays selectors: what is refused, what they answer or fail with for a device, and what that costs."""

import re
from typing import Any, Final

import msgspec
import pytest
from cel_values import written
from scoreboard import Case, GoldenRun

from trio_sched.cel.device_selector import (
    CompiledSelector,
    compile_device_selector,
    device_environment,
    device_value,
)
from trio_sched.cel.errors import COST_EXCEEDED, CompileError, EvaluationError
from trio_sched.cel.planning.program import Program, compile_program
from trio_sched.cel.values.types import long_name
from trio_sched.cel.values.values import CelMap
from trio_sched.objects.resource.resource_slice import Device

CHUNKS: Final = 2
AREA: Final = "cel"
_FOREIGN: Final = re.compile(
    r"((Illegal regex: )?error parsing regexp:|URL parse error|IP Address .* parse error|network address parse error)"
)
"""Texts that quote the parser of another library end, for us, where that begins."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_selectors_are_decided_as_kube_scheduler_decides_them(golden: GoldenRun, chunk: int) -> None:
    for case in golden.cases(AREA, chunk=chunk, chunks=CHUNKS, sample=800):
        _replay(golden, case)
    golden.check()


def _replay(golden: GoldenRun, case: Case) -> None:
    expected, name = case["expect"], f"{case['name']} {case['expr'][:200]!r}"
    refused = "compileErrorTypecheck" if case["group"] == "typecheck" else "compileError"
    try:
        compiled = _compiled(case)
    except CompileError as error:
        detail = f"{name}: expected {expected}, got compile error {error}"
        golden.record(AREA, refused, "compileError" in expected, detail)
        return
    if "compileError" in expected:
        golden.record(AREA, refused, False, f"{name}: expected compile error {expected['compileError']!r}, got none")
        return
    program = compiled if isinstance(compiled, Program) else compiled.program
    cost: int | None = None
    try:
        device = _device(case)
        cost = (outcome := program.outcome({"device": device})).cost
        if outcome.error is not None:
            raise outcome.error
        got = _answer(case, compiled, outcome.value)
    except EvaluationError as error:
        got = {"runtimeError": str(error)}
    _compare(golden, name, expected, got, program)
    if "cost" in case:
        golden.record(AREA, "cost", case["cost"] == cost, f"{name}: expected cost {case['cost']}, got {cost}")


def _compiled(case: Case) -> Program | CompiledSelector:
    list_attributes = bool(case.get("featureGates", {}).get("DRAListTypeAttributes"))
    if case["raw"]:
        return compile_program(case["expr"], device_environment(list_attributes=list_attributes))
    return compile_device_selector(case["expr"], list_attributes=list_attributes)


def _device(case: Case) -> CelMap:
    list_attributes = bool(case.get("featureGates", {}).get("DRAListTypeAttributes"))
    return device_value(case["device"]["driver"], _wire(case), list_attributes=list_attributes)


def _wire(case: Case) -> Device:
    return msgspec.convert({key: value for key, value in case["device"].items() if key != "driver"}, Device)


def _answer(case: Case, compiled: Program | CompiledSelector, value: Any) -> dict[str, Any]:
    if isinstance(compiled, Program):
        return {"value": written(value), "type": long_name(compiled.type)}
    return {"match": compiled.matches(case["device"]["driver"], _wire(case))}


def _compare(golden: GoldenRun, name: str, expected: Any, got: dict[str, Any], program: Program) -> None:
    detail = f"{name}: expected {expected}, got {got}"
    exceeded = (expected.get("runtimeError") == COST_EXCEEDED, got.get("runtimeError") == COST_EXCEEDED)
    if any(exceeded):
        golden.record(AREA, "limit", all(exceeded), detail)
    elif "runtimeError" in expected:
        golden.record(AREA, "runtimeError", _own(got.get("runtimeError")) == _own(expected["runtimeError"]), detail)
    elif "match" in expected:
        golden.record(AREA, "match", got.get("match") == expected["match"], detail)
    else:
        golden.record(AREA, "value", got.get("value") == expected["value"], detail)
        golden.record(AREA, "type", long_name(program.type) == expected["type"], detail)


def _own(text: str | None) -> str | None:
    """*text* without what another library says."""
    match = _FOREIGN.search(text or "")
    return text if match is None or text is None else text[: match.end()]
