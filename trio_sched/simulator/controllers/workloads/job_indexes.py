"""The indexes of the pods of an indexed Job, as pods and the status of the Job have them; failures of each."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from trio_sched.simulator.admission.annotations import number_in
from trio_sched.simulator.storage.object_store import StoredObject

INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_MOST_INDEXES: Final = 1 << 20
"""The most indexes of a status that was given: so many pods can have run in no simulation."""


def index_of(pod: StoredObject) -> int | None:
    """The index of a pod of an indexed Job."""
    return number_in((pod.fields["metadata"].get("annotations") or {}).get(INDEX))


def failures_of_index(pod: StoredObject) -> int:
    """How many pods of its index had failed before this one, and count."""
    return number_in((pod.fields["metadata"].get("annotations") or {}).get(INDEX_FAILURES)) or 0


def ignored_failures_of_index(pod: StoredObject) -> int:
    """How many of them the pod failure policy ignores."""
    return number_in((pod.fields["metadata"].get("annotations") or {}).get(IGNORED_INDEX_FAILURES)) or 0


def index_spans(text: Any) -> Iterator[range]:
    """The indexes in a text such as ``0-2,5``, span by span; one may be longer than memory."""
    for part in text.split(",") if isinstance(text, str) and text else ():
        first, _dash, last = part.partition("-")
        low, high = number_in(first), number_in(last or first)
        if low is not None and high is not None:
            yield range(low, high + 1)


def read_indexes(text: Any, completions: int) -> set[int]:
    """The indexes in a text such as ``0-2,5`` that are below *completions*, and below `_MOST_INDEXES`."""
    end = min(completions, _MOST_INDEXES)
    return {index for span in index_spans(text) for index in range(max(span.start, 0), min(span.stop, end))}


def written_indexes(indexes: Iterable[int]) -> str:
    """*indexes* as a text such as ``0-2,5``."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and spans[-1][1] == index - 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    return ",".join(
        str(low) if low == high else f"{low},{high}" if high == low + 1 else f"{low}-{high}" for low, high in spans
    )
