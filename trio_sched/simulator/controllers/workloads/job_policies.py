"""What the policies of a Job say: which action podFailurePolicy takes, whether successPolicy is met, what is replaced.

What comes of an action, such as FailIndex, is in `job_counts`.
"""

from collections.abc import Iterable

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.job_indexes import index_spans
from trio_sched.simulator.storage.object_store import StoredObject


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


def replaces_failed_only(spec: Json) -> bool:
    """Whether a pod that is being deleted is replaced only when it has ended."""
    return spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec
