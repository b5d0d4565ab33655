"""What tests of expressions have in common: one device, and the outcome of an expression for it as text."""

from __future__ import annotations

from cel_values import written

from trio_sched.cel.device_selector import device_environment, device_value
from trio_sched.cel.errors import CompileError, EvaluationError
from trio_sched.cel.planning.program import compile_program
from trio_sched.objects.resource.resource_slice import Device, DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"
DEVICE = Device(
    name="gpu-0",
    attributes={
        "model": DeviceAttribute(string="A"),
        "index": DeviceAttribute(int_=2),
        "healthy": DeviceAttribute(bool_=True),
        "firmware": DeviceAttribute(version="3.12.4"),
        "other.example.com/rack": DeviceAttribute(string="r7"),
    },
    capacity={"memory": DeviceCapacity(value="80Gi")},
)
A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'


def outcome(expression: str, device: Device = DEVICE) -> tuple[str, int]:
    """The value of *expression*, or ``error: …`` or ``refused: …``; and what it cost."""
    expression = expression.replace("$A", A).replace("$C", C)
    try:
        program = compile_program(expression, device_environment(list_attributes=False))
    except CompileError as error:
        return f"refused: {error}", 0
    found = program.outcome({"device": device_value(DRIVER, device, list_attributes=False)})
    return (written(found.value) if found.error is None else f"error: {found.error}"), found.cost


def result(expression: str) -> str:
    """The outcome of *expression* without the cost."""
    return outcome(expression)[0]


__all__ = ["DEVICE", "DRIVER", "EvaluationError", "outcome", "result"]
