"""The phase of a pod."""

from trio_sched.documents.json_values import Json


def phase_of(fields: Json) -> str:
    """The phase of a pod; empty if it has none yet."""
    return (fields.get("status") or {}).get("phase") or ""


def is_finished(fields: Json) -> bool:
    """Whether a pod has ended, well or not."""
    return phase_of(fields) in ("Succeeded", "Failed")
