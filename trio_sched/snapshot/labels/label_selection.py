"""Label selectors, compiled once: which pods (or namespaces) they match.

Source: label selector semantics of Kubernetes 1.36; a missing selector matches nothing, an empty one everything.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from trio_sched.go.text import quote
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.snapshot.labels.selector_problems import in_one_text, requirement_problems
from trio_sched.snapshot.sized_cache import SizedCache

_MAX_COMPILED = 4096
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

Requirement = tuple[str, str, frozenset[str]]
"""(key, operator, values)."""


class SelectorError(ValueError):
    """A selector that cannot be evaluated; the text is that of Kubernetes."""


@frozen(cache_hash=True)
class LabelMatcher:
    """A compiled label selector; equal ones match the same."""

    requirements: tuple[Requirement, ...] = ()
    """All must hold."""
    is_nothing: bool = False

    @property
    def texts(self) -> int:
        """How many keys and values it has: its size in a `SizedCache`."""
        return sum(1 + len(values) for _key, _operator, values in self.requirements)

    @property
    def is_everything(self) -> bool:
        """Whether it matches all labels."""
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether something with *labels* is selected."""
        if self.is_nothing:
            return False
        for key, operator, values in self.requirements:
            value = labels.get(key)
            if operator == "In":
                if value is None or value not in values:
                    return False
            elif operator == "NotIn":
                if value is not None and value in values:
                    return False
            elif (value is not None) != (operator == "Exists"):
                return False
        return True

    def and_equal(self, labels: Mapping[str, str]) -> LabelMatcher:
        """A matcher that wants *labels* to be present as well; what matches nothing still matches nothing."""
        if self.is_nothing or not labels:
            return self
        return self.both(LabelMatcher(tuple((key, "In", frozenset((value,))) for key, value in labels.items())))

    def both(self, *others: LabelMatcher) -> LabelMatcher:
        """A matcher of what both this and all of *others* match."""
        every = (self, *others)
        if any(one.is_nothing for one in every):
            return NOTHING
        merged = dict.fromkeys(requirement for one in every for requirement in one.requirements)
        return evolve(self, requirements=tuple(sorted(merged, key=_order)))


EVERYTHING = LabelMatcher()
"""Matches any labels, as an empty selector does."""
NOTHING = LabelMatcher(is_nothing=True)
"""Matches no labels, as a missing selector does."""


def _order(requirement: Requirement) -> tuple[str, str, list[str]]:
    key, operator, values = requirement
    return key, operator, sorted(values)


_compiled: SizedCache[object, LabelMatcher] = SizedCache()


def compile_selector(selector: LabelSelector | None) -> LabelMatcher:
    """*selector*, compiled; equal selectors give the same object.

    Raises:
        SelectorError: it cannot be evaluated.
    """
    if selector is None:
        return NOTHING
    labels = selector.match_labels
    key = (tuple(labels.items()) if labels else (), selector.match_expressions)
    found = _compiled.get(key)
    if found is None:
        found = _compile(selector)
        _compiled.keep(key, found, texts=found.texts, max_entries=_MAX_COMPILED)
    return found


def selector_of_map(labels: Mapping[str, str]) -> LabelMatcher:
    """A matcher of everything that has *labels*."""
    return EVERYTHING.and_equal(labels)


def _compile(selector: LabelSelector) -> LabelMatcher:
    requirements: dict[Requirement, None] = {}
    for key, value in (selector.match_labels or {}).items():
        requirements[_checked(key, "In", (value,))] = None
    for expression in selector.match_expressions or ():
        requirements[_requirement(expression)] = None
    return LabelMatcher(tuple(sorted(requirements, key=_order))) if requirements else EVERYTHING


def _requirement(expression: LabelSelectorRequirement) -> Requirement:
    if expression.operator not in _OPERATORS:
        raise SelectorError(f"{quote(expression.operator)} is not a valid label selector operator")
    return _checked(expression.key, expression.operator, expression.values or ())


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    if problem := in_one_text(requirement_problems(key, operator, values or None)):
        raise SelectorError(problem)
    return key, operator, frozenset(values)
