"""Rules of the configurations of admission webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.selectors import key_problems, label_selector_problems
from trio_sched.simulator.validation.meta.shapes import Json

_VERSIONS: Final = ("v1", "v1beta1")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_CHOICES: Final = (
    ("failurePolicy", ("Fail", "Ignore")),
    ("matchPolicy", ("Equivalent", "Exact")),
    ("reinvocationPolicy", ("IfNeeded", "Never")),
)
_MAX_CONDITIONS: Final = 64


def webhook_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration."""
    seen: set[str] = set()
    for index, hook in enumerate(fields.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _hook_problems(hook, path)
        if name and name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _hook_problems(hook: Json, path: str) -> Iterator[FieldProblem]:
    name, effects, seconds = hook.get("name") or "", hook.get("sideEffects"), hook.get("timeoutSeconds")
    if not name:
        yield required(f"{path}.name")
    elif problem := names.subdomain(name):
        yield bad_value(f"{path}.name", name, problem)
    elif name.count(".") < 2:
        yield bad_value(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from _rule_problems(rule, f"{path}.rules[{index}]")
    for field, choices in _CHOICES:
        if hook.get(field) is not None and hook[field] not in choices:
            yield unsupported(f"{path}.{field}", hook[field], choices)
    if effects is None:
        yield required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    elif effects not in _SIDE_EFFECTS:
        yield unsupported(f"{path}.sideEffects", effects, _SIDE_EFFECTS)
    if seconds is not None and not 1 <= seconds <= 30:
        yield bad_value(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    for field in ("namespaceSelector", "objectSelector"):
        yield from label_selector_problems(hook.get(field), f"{path}.{field}")
    yield from client_problems(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from _version_problems(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
    yield from _condition_problems(hook.get("matchConditions") or [], f"{path}.matchConditions")


def _version_problems(versions: list[str], path: str) -> Iterator[FieldProblem]:
    if not versions:
        yield required(path, "must specify one of v1, v1beta1")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield bad_value(f"{path}[{index}]", version, "duplicate version")
        elif problem := names.old_dns_label(version):
            yield bad_value(f"{path}[{index}]", version, problem)
    if not {*versions} & {*_VERSIONS}:
        yield bad_value(path, versions, "must include at least one of v1, v1beta1")


def _condition_problems(conditions: list[Json], path: str) -> Iterator[FieldProblem]:
    if len(conditions) > _MAX_CONDITIONS:
        yield FieldProblem("FieldValueTooMany", path, f"must have at most {_MAX_CONDITIONS} items")
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, name = f"{path}[{index}]", condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            yield required(f"{where}.expression")
        if not name:
            yield required(f"{where}.name")
            continue
        yield from key_problems(name, f"{where}.name")
        if name in seen:
            yield duplicate(f"{where}.name", name)
        seen.add(name)


def _rule_problems(rule: Json, path: str) -> Iterator[FieldProblem]:
    operations, scope = rule.get("operations") or [], rule.get("scope")
    for field in ("operations", "apiGroups", "apiVersions", "resources"):
        values = rule.get(field) or []
        if not values:
            yield required(f"{path}.{field}")
        elif len(values) > 1 and "*" in values and field != "resources":
            yield bad_value(f"{path}.{field}", values, f"if '*' is present, must not specify other {field}")
        if field != "apiGroups":
            for index, value in enumerate(values):
                if not value:
                    yield required(f"{path}.{field}[{index}]")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _resource_problems(rule.get("resources") or [], f"{path}.resources")
    if scope is not None and scope not in _SCOPES:
        yield unsupported(f"{path}.scope", scope, _SCOPES)


def _resource_problems(resources: list[str], path: str) -> Iterator[FieldProblem]:
    """What is wrong with resources and subresources: one that is said already by a wildcard before it, for instance."""
    with_all_parts: set[str] = set()
    of_all: set[str] = set()
    for index, text in enumerate(resources):
        resource, slash, part = text.partition("/")
        if not slash:
            continue
        if resource in with_all_parts:
            yield bad_value(f"{path}[{index}]", text, f"if '{resource}/*' is present, must not specify {text}")
        if part in of_all:
            yield bad_value(f"{path}[{index}]", text, f"if '*/{part}' is present, must not specify {text}")
        if part == "*":
            with_all_parts.add(resource)
        if resource == "*":
            of_all.add(part)
    if "*/*" in resources and len(resources) > 1:
        yield bad_value(path, resources, "if '*/*' is present, must not specify other resources")
    without_parts = [text for text in resources if "/" not in text]
    if "*" in without_parts and without_parts[-1] != "*":  # the API server looks at the last one
        detail = "if '*' is present, must not specify other resources without subresources"
        yield bad_value(path, resources, detail)


def client_problems(config: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with where the API server finds a webhook."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_problems(url, f"{path}.url")
    else:
        yield from _service_problems(service or {}, f"{path}.service")


def _url_problems(url: str, path: str) -> Iterator[FieldProblem]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{form}")
        return
    if parts.scheme != "https":
        yield bad_value(path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    if not parts.netloc.rpartition("@")[2]:
        yield bad_value(path, "", f"host must be specified{form}")
    for found, detail in (
        (parts.username, "user information is not permitted in the URL"),
        (parts.fragment, "fragments are not permitted in the URL"),
        (parts.query, "query parameters are not permitted in the URL"),
    ):
        if found:
            yield bad_value(path, found, detail)


def _service_problems(service: Json, path: str) -> Iterator[FieldProblem]:
    for field in ("name", "namespace"):
        if not service.get(field):
            yield required(f"{path}.{field}")
    port, target = service.get("port", 443), service.get("path")
    if problem := names.port_number(port):
        yield bad_value(f"{path}.port", port, f"port is not valid: {problem}")
    if target in (None, "", "/"):
        return
    if not target.startswith("/"):
        yield bad_value(f"{path}.path", target, "must start with a '/'")
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            yield bad_value(f"{path}.path", target, f"segment[{index}] may not be empty")
        elif problem := names.subdomain(step):
            yield bad_value(f"{path}.path", target, f"segment[{index}]: {problem}")
