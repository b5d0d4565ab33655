"""Rules of Jobs and CronJobs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.go.text import quote
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.pods.containers import containers_of
from trio_sched.simulator.validation.batch.cron import schedule_problem
from trio_sched.simulator.validation.core.pods import template_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    too_long,
    too_many,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import immutable
from trio_sched.simulator.validation.meta.numbers import negative_problems
from trio_sched.simulator.validation.meta.selectors import label_selector_problems

JOB_NAME_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
JOB_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
_NEW_UID: Final = "(its uid)"
"""In place of the uid that a new Job will get, which nobody can have written."""
_NO_MATCH: Final = "`selector` does not match template `labels`"
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_MAX_NAME: Final = 52
"""A CronJob appends eleven characters to its name, and a pod of a Job has at most 63."""
_MAX_INDEXES_TEXT: Final = 64 * 1024
_INTEGER: Final = re.compile(r"\+?[0-9]{1,4000}", re.ASCII)
"""What Go converts, but for its size; Python converts no more than some thousand digits."""
_TIME_ZONE: Final = re.compile(r"[A-Za-z0-9_+\-/]{1,255}")


def sent_job_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a Job that is to be created, before its selector is generated."""
    spec, name = fields.get("spec") or {}, fields["metadata"].get("name") or ""
    if spec.get("manualSelector"):
        return
    generated = dict.fromkeys(JOB_NAME_LABELS, name) | dict.fromkeys(JOB_UID_LABELS, _NEW_UID)
    selector, labels = spec.get("selector") or {}, _template_labels(spec)
    if not matches_labels(selector, generated):
        yield bad_value("spec.selector", selector, "`selector` not auto-generated")
    for label, value in generated.items():
        if labels.get(label, value) != value:
            yield bad_value(f"spec.template.metadata.labels[{label}]", labels, f"must be '{value}'")
    if not matches_labels(selector, generated | labels):
        yield bad_value("spec.template.metadata.labels", labels, _NO_MATCH)


def job_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new Job."""
    spec, name = fields.get("spec") or {}, fields["metadata"].get("name") or ""
    yield from job_spec_problems(spec, "spec")
    if spec.get("manualSelector"):
        yield from _manual_selector_problems(spec)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions and completions > 0:
        host = f"{name}-{completions - 1}"
        if names.dns_label(host):
            detail = f"will not able to create pod with invalid DNS label: {host}"
            yield bad_value("metadata.name", name, detail)


def _manual_selector_problems(spec: Json) -> Iterator[FieldProblem]:
    selector, labels = spec.get("selector"), _template_labels(spec)
    if selector is None:
        yield required("spec.selector")
    if selector is None or not matches_labels(selector, labels):  # no selector at all matches nothing
        yield bad_value("spec.template.metadata.labels", labels, _NO_MATCH)


def _template_labels(spec: Json) -> dict[str, str]:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}


def job_spec_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the spec of a Job, or of a template of one."""
    counts = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from negative_problems(spec, path, *counts, "backoffLimitPerIndex", "maxFailedIndexes")
    yield from label_selector_problems(spec.get("selector"), f"{path}.selector")
    manager = spec.get("managedBy")
    if manager is not None and (problem := names.domain_prefixed_path(manager)):
        yield bad_value(f"{path}.managedBy", manager, problem)
    yield from _index_problems(spec, path)
    template = spec.get("template") or {}
    if (policy := spec.get("podFailurePolicy")) is not None:
        yield from _failure_policy_problems(policy, spec, f"{path}.podFailurePolicy")
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        choices = ("Failed",) if policy is not None else ("Failed", "TerminatingOrFailed")
        if replacement not in choices:
            yield unsupported(f"{path}.podReplacementPolicy", replacement, choices)
    yield from template_problems(template, f"{path}.template")
    restart, where = (template.get("spec") or {}).get("restartPolicy"), f"{path}.template.spec.restartPolicy"
    if restart in (None, "", "Always"):
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif restart not in ("OnFailure", "Never"):
        yield unsupported(where, restart, ("OnFailure", "Never"))
    elif policy is not None and restart != "Never":
        yield bad_value(where, restart, 'only "Never" is supported when podFailurePolicy is specified')


def _index_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    mode, completions = spec.get("completionMode", "NonIndexed"), spec.get("completions")
    per_index, failed, parallelism = (
        spec.get(name) for name in ("backoffLimitPerIndex", "maxFailedIndexes", "parallelism")
    )
    success = spec.get("successPolicy")
    if failed is not None and per_index is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if mode not in ("NonIndexed", "Indexed"):
        yield unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        if completions is None:
            yield required(f"{path}.completions", "when completion mode is Indexed")
        if parallelism is not None and parallelism > 100_000:
            detail = "must be less than or equal to 100000 when completion mode is Indexed"
            yield bad_value(f"{path}.parallelism", parallelism, detail)
        if failed is not None and completions is not None and failed > completions:
            yield bad_value(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
        if failed is not None and failed > 100_000:
            yield bad_value(f"{path}.maxFailedIndexes", failed, "must be less than or equal to 100000")
    elif mode == "NonIndexed":
        for field, value in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed)):
            if value is not None:
                yield bad_value(f"{path}.{field}", value, "requires indexed completion mode")
    if success is not None:
        if mode != "Indexed":
            yield bad_value(f"{path}.successPolicy", success, "requires indexed completion mode")
        else:
            yield from _success_policy_problems(success, completions, f"{path}.successPolicy")


def _failure_policy_problems(policy: Json, spec: Json, path: str) -> Iterator[FieldProblem]:
    rules = policy.get("rules") or []
    of_pod = (spec.get("template") or {}).get("spec") or {}
    known = {container.get("name") for container in containers_of(of_pod)}
    if len(rules) > 20:
        yield too_many(f"{path}.rules", len(rules), 20)
    for index, rule in enumerate(rules):
        where, action = f"{path}.rules[{index}]", rule.get("action") or ""
        if not action:
            yield required(f"{where}.action", f"valid values: {list(_ACTIONS)}")
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield bad_value(f"{where}.action", action, "requires the backoffLimitPerIndex to be set")
        elif action not in _ACTIONS:
            yield unsupported(f"{where}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            yield from _exit_code_problems(codes, f"{where}.onExitCodes", known)
        for number, condition in enumerate(conditions):
            at = f"{where}.onPodConditions[{number}]"
            if problem := names.qualified_name(condition.get("type") or ""):
                yield bad_value(f"{at}.type", condition.get("type") or "", problem)
            if (condition.get("status") or "True") not in ("True", "False", "Unknown"):
                yield unsupported(f"{at}.status", condition["status"], ("False", "True", "Unknown"))
        if codes is not None and conditions:
            yield _rule(where, "specifying both OnExitCodes and OnPodConditions is not supported")
        if codes is None and not conditions:
            yield _rule(where, "specifying one of OnExitCodes and OnPodConditions is required")


def _rule(path: str, detail: str) -> FieldProblem:
    return FieldProblem("FieldValueInvalid", path, f"Invalid value: {detail}")


def _exit_code_problems(codes: Json, path: str, containers: set[Any]) -> Iterator[FieldProblem]:
    operator, values, name = codes.get("operator") or "", codes.get("values") or [], codes.get("containerName")
    if not operator:
        yield required(f"{path}.operator", 'valid values: ["In" "NotIn"]')
    elif operator not in ("In", "NotIn"):
        yield unsupported(f"{path}.operator", operator, ("In", "NotIn"))
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield bad_value(f"{path}.containerName", name, detail)
    if not values:
        yield bad_value(f"{path}.values", values, "at least one value is required")
    elif len(values) > 255:
        yield too_many(f"{path}.values", len(values), 255)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield bad_value(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{path}.values[{index}]", value)
        seen.add(value)
    if values != sorted(values):
        yield bad_value(f"{path}.values", values, "must be ordered")


def _success_policy_problems(policy: Json, completions: int | None, path: str) -> Iterator[FieldProblem]:
    rules = policy.get("rules") or []
    if not rules:
        yield required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > 20:
        yield too_many(f"{path}.rules", len(rules), 20)
    for index, rule in enumerate(rules):
        where, indexes, count = f"{path}.rules[{index}]", rule.get("succeededIndexes"), rule.get("succeededCount")
        if indexes is None and count is None:
            yield required(where, "at least one of succeededCount or succeededIndexes must be specified")
        total = None
        if indexes is not None:
            total, error = count_of_indexes(indexes, completions or 0)
            if len(indexes.encode()) > _MAX_INDEXES_TEXT:
                yield too_long(f"{where}.succeededIndexes", _MAX_INDEXES_TEXT)
            if error:
                yield bad_value(f"{where}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
        if count is not None:
            yield from negative_problems(rule, where, "succeededCount")
            for limit, what in (
                (completions, "the number of specified completions"),
                (total, "the number of indexes in the specified succeededIndexes field"),
            ):
                if limit is not None and count > limit:
                    detail = f"must be less than or equal to {limit} ({what})"
                    yield bad_value(f"{where}.succeededCount", count, detail)


def count_of_indexes(text: str, completions: int) -> tuple[int, str]:
    """How many indexes ranges such as ``0-2,5`` name, or what is wrong with them."""
    count, last = 0, -1
    for part in text.split(",") if text else ():
        ends: list[int] = []
        limits = part.split("-")
        if len(limits) > 2:
            rule = "an index interval can have at most two parts separated by '-'"
            return 0, f"the fragment {quote(part)} violates the requirement that {rule}"
        for limit in limits:
            if _INTEGER.fullmatch(limit) is None or int(limit) >= 1 << 63:
                return 0, f"cannot convert string to integer for index: {quote(limit)}"
            if int(limit) >= completions:
                return 0, f"too large index: {quote(limit)}"
            ends.append(int(limit))
        if len(ends) == 2 and ends[0] >= ends[1]:
            return 0, f"non-increasing order, previous: {ends[0]}, current: {ends[1]}"
        if last >= ends[0]:
            return 0, f"non-increasing order, previous: {last}, current: {ends[0]}"
        count, last = count + ends[-1] - ends[0] + 1, ends[-1]
    return count, ""


def cron_job_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new CronJob."""
    spec, name = fields.get("spec") or {}, fields["metadata"].get("name") or ""
    if len(name) > _MAX_NAME:
        yield bad_value("metadata.name", name, "must be no more than 52 characters")
    schedule = spec.get("schedule") or ""
    if not schedule:
        yield required("spec.schedule")
    elif "TZ" in schedule and spec.get("timeZone") is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield bad_value("spec.schedule", schedule, detail)
    elif "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield bad_value("spec.schedule", schedule, detail)
    elif problem := schedule_problem(schedule):
        yield bad_value("spec.schedule", schedule, problem)
    yield from _time_zone_problems(spec.get("timeZone"), "spec.timeZone")
    limits = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from negative_problems(spec, "spec", *limits)
    policy = spec.get("concurrencyPolicy") or "Allow"
    if policy not in ("Allow", "Forbid", "Replace"):
        yield unsupported("spec.concurrencyPolicy", policy, ("Allow", "Forbid", "Replace"))
    template = (spec.get("jobTemplate") or {}).get("spec") or {}
    if template.get("selector") is not None:
        yield bad_value("spec.jobTemplate.spec.selector", template["selector"], "`selector` will be auto-generated")
    if template.get("manualSelector"):
        yield unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil",))
    yield from job_spec_problems(template, "spec.jobTemplate.spec")


def _time_zone_problems(zone: str | None, path: str) -> Iterator[FieldProblem]:
    if zone is None:
        return
    if not zone:
        yield bad_value(path, zone, "timeZone must be nil or non-empty string")
        return
    if zone.casefold() == "local":
        yield bad_value(
            path, zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        return
    from zoneinfo import ZoneInfo  # few CronJobs have one

    try:
        if not _TIME_ZONE.fullmatch(zone):
            raise ValueError
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        yield bad_value(path, zone, f"unknown time zone {zone}")


def job_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a Job."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    fixed = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
    yield from immutable(before, after, *fixed)
    if not before.get("suspend"):
        yield from immutable(before, after, "template")
    indexed = after.get("completionMode") == "Indexed"
    if not indexed or after.get("completions") != after.get("parallelism"):
        yield from immutable(before, after, "completions")
