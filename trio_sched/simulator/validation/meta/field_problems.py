"""What is wrong with fields of an object, in the words of the API server."""

from collections.abc import Sequence

import msgspec

from trio_sched.documents.json_values import Json


class FieldProblem(msgspec.Struct, frozen=True):
    """One thing wrong with one field of an object."""

    reason: str
    field: str
    message: str

    def as_cause(self) -> Json:
        """This problem as an entry of ``details.causes``."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required(field: str, detail: str = "") -> FieldProblem:
    """A field that must be there and is not."""
    return FieldProblem("FieldValueRequired", field, "Required value" + (f": {detail}" if detail else ""))


def bad_value(field: str, value: object, detail: str) -> FieldProblem:
    """A field whose value breaks a rule."""
    shown = msgspec.json.encode(value).decode()
    return FieldProblem("FieldValueInvalid", field, f"Invalid value: {shown}: {detail}")


def unsupported(field: str, value: object, choices: Sequence[str]) -> FieldProblem:
    """A field whose value is not one of the supported values."""
    shown = msgspec.json.encode(value).decode()
    listed = ", ".join(f'"{choice}"' for choice in choices)
    return FieldProblem("FieldValueNotSupported", field, f"Unsupported value: {shown}: supported values: {listed}")


def forbidden_field(field: str, detail: str) -> FieldProblem:
    """A field that may not be set or changed here."""
    return FieldProblem("FieldValueForbidden", field, f"Forbidden: {detail}")


def duplicate(field: str, value: object) -> FieldProblem:
    """A value that must be unique in its list and is not."""
    return FieldProblem("FieldValueDuplicate", field, f"Duplicate value: {msgspec.json.encode(value).decode()}")


def not_found_value(field: str, value: object, detail: str = "") -> FieldProblem:
    """A value that names something that is not there."""
    shown = f"Not found: {msgspec.json.encode(value).decode()}"
    return FieldProblem("FieldValueNotFound", field, f"{shown}: {detail}" if detail else shown)


def too_many(field: str, count: int, limit: int) -> FieldProblem:
    """A list with too many items."""
    return FieldProblem("FieldValueTooMany", field, f"Too many: {count}: must have at most {limit} items")


def too_long(field: str, limit: int) -> FieldProblem:
    """A text with too many bytes."""
    return FieldProblem("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")
