"""What the pods of a Job say: which indexes are done, what a failure means, how long to wait after it."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import frozen

from trio_sched.simulator.admission.annotations import number_in
from trio_sched.simulator.kubelets.pod_states import condition_of, is_terminating, unix_time
from trio_sched.simulator.pods.pod_phase import is_finished, phase_of
from trio_sched.simulator.raw_objects import Json
from trio_sched.simulator.storage.object_store import StoredObject

TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
_MOST_INDEXES: Final = 1 << 20
"""The most indexes of a status that was given: so many pods can have run in no simulation."""
IGNORED_INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_FIRST_BACKOFF_SECONDS: Final = 10.0
_LAST_BACKOFF_SECONDS: Final = 600.0


def is_uncounted(pod: StoredObject) -> bool:
    """Whether a pod has not been counted as succeeded or failed."""
    return TRACKING in (pod.fields["metadata"].get("finalizers") or ())


def has_failed(spec: Json, pod: StoredObject) -> bool:
    """Whether a pod counts as failed for the Job of *spec*: one that is being deleted does, unless it is waited for."""
    if is_finished(pod.fields):
        return phase_of(pod.fields) == "Failed"
    return is_terminating(pod.fields) and not replaces_failed_only(spec)


def replaces_failed_only(spec: Json) -> bool:
    """Whether a pod that is being deleted is replaced only when it has ended."""
    return spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec


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


@frozen
class FailureVerdict:
    """What the policy says about a failed pod.

    Attributes:
        action: ``Count``, ``Ignore``, ``FailJob`` or ``FailIndex``.
        message: why the Job fails.
    """

    action: str = "Count"
    message: str = ""


def failure_verdict(spec: Json, pod: StoredObject) -> FailureVerdict:
    """What the pod failure policy of the Job of *spec* says about a failed pod."""
    metadata = pod.fields["metadata"]
    who = f"{metadata['namespace']}/{metadata['name']}"
    for number, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        action = rule.get("action") or "Count"
        ended = _matching_container(rule.get("onExitCodes"), pod.fields)
        if ended is not None:
            name, code = ended
            why = (
                f"Container {name} for pod {who} failed with exit code {code} matching {action} rule at index {number}"
            )
            return FailureVerdict(action, why)
        condition = _matching_condition(rule.get("onPodConditions") or (), pod.fields)
        if condition is not None:
            why = f"Pod {who} has condition {condition} matching {action} rule at index {number}"
            return FailureVerdict(action, why)
    return FailureVerdict()


def _matching_container(rule: Json | None, fields: Json) -> tuple[str, int] | None:
    if rule is None:
        return None
    status, values = fields.get("status") or {}, rule.get("values") or ()
    for one in [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]:
        ended = (one.get("state") or {}).get("terminated")
        if ended is None or rule.get("containerName") not in (None, "", one.get("name")):
            continue
        code = ended.get("exitCode", 0)
        if code and (code in values) is (rule.get("operator") == "In"):
            return one.get("name") or "", code
    return None


def _matching_condition(rules: Iterable[Json], fields: Json) -> str | None:
    for rule in rules:
        for one in (fields.get("status") or {}).get("conditions") or ():
            if one.get("type") == rule.get("type") and one.get("status") == (rule.get("status") or "True"):
                return str(rule.get("type"))
    return None


def finished_at(pod: StoredObject) -> float:
    """When a pod ended, as a Unix time: by its containers, else by its condition, else by its deletion."""
    status, metadata = pod.fields.get("status") or {}, pod.fields["metadata"]
    ends = [
        unix_time(((one.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for one in status.get("containerStatuses") or ()
    ]
    known = [moment for moment in ends if moment is not None]
    if known and len(known) == len(ends):
        return max(known)
    ready = condition_of(pod.fields, "Ready")
    if ready is not None and ready.get("status") == "False":
        since = unix_time(ready.get("lastTransitionTime"))
        if since is not None:
            return since
    deleted = unix_time(metadata.get("deletionTimestamp"))
    if deleted is not None:
        return deleted - (metadata.get("deletionGracePeriodSeconds") or 0)
    return unix_time(metadata.get("creationTimestamp")) or 0.0


def backoff_until(last_failure: float, failures: int) -> float:
    """When the next pod may be created after so many *failures* in a row, the last of them at a Unix time."""
    if not failures:
        return 0.0
    return last_failure + min(_FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 30), _LAST_BACKOFF_SECONDS)


def succeeds_by_policy(spec: Json, succeeded: set[int]) -> str | None:
    """Why the success policy of an indexed Job is met; None if it is not."""
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        counted, spans = succeeded, list(index_spans(rule.get("succeededIndexes")))
        if spans:
            counted = {index for index in succeeded if any(index in span for span in spans)}
        needed = rule.get("succeededCount") or sum(span.stop - span.start for span in spans)
        if needed and len(counted) >= needed:
            return f"Matched rules at index {number}"
    return None
