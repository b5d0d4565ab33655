"""What LimitRanges refuse of a pod that is changed, and the same change as they allow it.

The API server asks them when a pod is created or resized, so a change of requests that a scheduler would like may be
one that nobody can make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import define, evolve
from msgspec import structs

from trio_sched.explanation.trial import Trial
from trio_sched.objects.amounts.amount_text import amount_text, quantity_text
from trio_sched.objects.amounts.quantity import NANO, Quantity, parse_nano
from trio_sched.objects.limit_range import LimitRange, LimitRangeItem
from trio_sched.objects.pod import Container, Pod, ResourceRequirements
from trio_sched.objects.pod_requests import ResourceOptions, nano_requests, to_amounts
from trio_sched.plugin_api.clauses import Change, Edit, edit_pod, some_names

KIND: Final = "LimitRange"
_OPTIONS: Final = ResourceOptions()
_MOST_STEPS: Final = 100
"""Containers that give or get something, one after the other."""


def limit_ranges(trial: Trial) -> list[LimitRange]:
    """Those of the pod's namespace, as far as they are known."""
    cache = trial.scheduler.object_cache
    ranges: Iterable[LimitRange] = cache.objects(KIND) if KIND in cache.kinds else ()
    return [one for one in ranges if one.namespace == trial.pod.namespace]


def refusals(pod: Pod, ranges: Iterable[LimitRange]) -> list[str]:
    """What *ranges* refuse of *pod*, each with the name of the LimitRange."""
    known = list(ranges)
    parts = _parts(pod, _items(known))
    texts = [
        f"LimitRange {one.name} refuses {text}"
        for one in known
        for item in one.spec.limits or ()
        for text in parts.of(item)
    ]
    return list(dict.fromkeys(texts))


def as_allowed(change: Change, old: Pod, new: Pod, ranges: Sequence[LimitRange]) -> Iterator[Change]:
    """*change*, which *ranges* refuse, as they allow it: with other requests and limits, else with a lower minimum.

    Args:
        change: makes *new* of *old*.
        old: the pod as it is.
        new: the pod as it would be.
        ranges: those of its namespace.
    """
    allowed = _allowed(new, ranges)
    if allowed is not None and not _takes_back(old, new, allowed):
        more = "".join(f" and {text}" for text in _differences(new, allowed))
        edit = edit_pod(old, lambda one: _allowed(one, ranges) or one)
        note = f"LimitRange {some_names([one.name for one in ranges])} asks for that" if more else ""
        notes = "; ".join(filter(None, (change.note, note)))
        yield evolve(change, title=f"{change.title}{more}", edits=(*change.edits, edit), note=notes)
        return
    lowered = [_with_lower_minimum(one, new) for one in ranges]
    if lowered == list(ranges) or _allowed(new, lowered) is None:
        return
    edits = [_edit(after) for before, after in zip(ranges, lowered, strict=True) if before != after]
    edit = edit_pod(old, lambda one: _allowed(one, lowered) or one)
    names = some_names([one.name for one in edits])
    title = f"lower the minimum of the LimitRange {names} and {change.title}"
    yield evolve(
        change, title=title, edits=(*edits, *change.edits, edit), note=f"it holds for all of namespace {old.namespace}"
    )


def _edit(one: LimitRange) -> Edit:
    return Edit(kind=KIND, name=one.name, namespace=one.namespace, apply=lambda _old: one)


# --- amounts ---------------------------------------------------------------------------------------------------------

Amounts = dict[str, int]
"""Resource → milli-CPU, bytes or a count."""


@define(eq=False)
class _Part:
    """The requests and limits of one container."""

    requests: Amounts
    limits: Amounts

    def problems(self, item: LimitRangeItem) -> Iterator[str]:
        """What *item* refuses of them."""
        for name, least in (item.min or {}).items():
            for what, amounts in (("request", self.requests), ("limit", self.limits)):
                if name in amounts and amounts[name] < _amount(name, least):
                    yield f"{name} of less than {least} per {item.type.lower()}"
                elif name not in amounts and what == "request":
                    yield f"no request for {name} per {item.type.lower()}"
        for name, most in (item.max or {}).items():
            if name not in self.limits:
                yield f"no limit for {name} per {item.type.lower()}"
            elif max(self.limits[name], self.requests.get(name, 0)) > _amount(name, most):
                yield f"{name} of more than {most} per {item.type.lower()}"
        for name, ratio in (item.max_limit_request_ratio or {}).items():
            request, limit = self.requests.get(name, 0), self.limits.get(name, 0)
            if not request or not limit:
                yield f"no request or no limit for {name} per {item.type.lower()}"
            elif limit > _times(request, ratio):
                yield f"a limit for {name} of more than {ratio} times its request per {item.type.lower()}"


@define(eq=False)
class _Parts:
    """Those of all containers of a pod."""

    pod: Pod
    parts: dict[tuple[str, int], _Part]
    """Field of the spec and index."""

    def of(self, item: LimitRangeItem) -> Iterator[str]:
        """What *item* refuses of the pod."""
        if item.type == "Container":
            for part in self.parts.values():
                yield from part.problems(item)
        elif item.type == "Pod":
            yield from self.total().problems(item)

    def total(self) -> _Part:
        """What the pod as a whole has: init containers do not run beside the others."""
        made = self.made()
        return _Part(*(_total(made, attribute) for attribute in ("requests", "limits")))

    def made(self) -> Pod:
        """The pod with these amounts."""
        found: dict[str, list[Container]] = {}
        for (field, index), part in self.parts.items():
            containers = found.setdefault(field, list(getattr(self.pod.spec, field)))
            before = containers[index].resources or ResourceRequirements()
            requests, limits = _changed(before.requests, part.requests), _changed(before.limits, part.limits)
            if (requests, limits) != (before.requests, before.limits):
                resources = structs.replace(before, requests=requests, limits=limits)
                containers[index] = structs.replace(containers[index], resources=resources)
        made = {field: tuple(containers) for field, containers in found.items()}
        return structs.replace(self.pod, spec=structs.replace(self.pod.spec, **made))


def _items(ranges: Iterable[LimitRange]) -> list[LimitRangeItem]:
    return [item for one in ranges for item in one.spec.limits or ()]


def _parts(pod: Pod, items: Iterable[LimitRangeItem] = ()) -> _Parts:
    """What the containers of *pod* have, and get of *items* when the pod is created or resized."""
    found: dict[tuple[str, int], _Part] = {}
    for field in ("containers", "init_containers"):
        for index, one in enumerate(getattr(pod.spec, field) or ()):
            resources = one.resources or ResourceRequirements()
            found[field, index] = _Part(*map(_amounts, (resources.requests, resources.limits)))
    for item in items:
        for part in found.values() if item.type == "Container" else ():
            part.requests = {**_amounts(item.default_request), **part.requests}
            part.limits = {**_amounts(item.default), **part.limits}
    return _Parts(pod, found)


def _amounts(quantities: Mapping[str, Quantity] | None) -> Amounts:
    return {name: _amount(name, quantity) for name, quantity in (quantities or {}).items()}


def _amount(resource: str, quantity: Quantity) -> int:
    return to_amounts({resource: parse_nano(quantity)}).amount(resource)


def _times(amount: int, ratio: Quantity) -> int:
    """*amount* times *ratio*, rounded down."""
    return amount * parse_nano(ratio) // NANO


def _changed(before: dict[str, Quantity] | None, amounts: Amounts) -> dict[str, Quantity] | None:
    """*before* with *amounts*; what is equal keeps its text."""
    old = _amounts(before)
    if amounts == old:
        return before
    texts = {name: quantity_text(name, amount) for name, amount in amounts.items()}
    return {name: (before or {})[name] if old.get(name) == amounts[name] else text for name, text in texts.items()}


def _total(pod: Pod, attribute: str) -> Amounts:
    """The total of the requests or limits, without overhead."""

    def counted(containers: Sequence[Container] | None) -> tuple[Container, ...]:
        return tuple(
            structs.replace(one, resources=ResourceRequirements(requests=getattr(one.resources, attribute, None)))
            for one in containers or ()
        )

    of_pod = pod.spec.resources and ResourceRequirements(requests=getattr(pod.spec.resources, attribute))
    spec = structs.replace(
        pod.spec,
        containers=counted(pod.spec.containers),
        init_containers=counted(pod.spec.init_containers),
        resources=of_pod,
        overhead=None,
    )
    found = to_amounts(nano_requests(structs.replace(pod, spec=spec), _OPTIONS))
    return {name: amount for name, amount in found.amounts() if amount}


# --- what is allowed -------------------------------------------------------------------------------------------------


def _allowed(pod: Pod, ranges: Sequence[LimitRange]) -> Pod | None:
    """*pod* with the requests and limits next to its own that *ranges* allow; None if none are found."""
    items = _items(ranges)
    found = _parts(pod, items)
    before = found.total().requests
    of_containers = [item for item in items if item.type == "Container"]
    for part in found.parts.values():
        for item in of_containers:
            for name, least in _amounts(item.min).items():
                if 0 < part.requests.get(name, 0) < least:
                    part.requests[name] = least
            for name, most in _amounts(item.max).items():
                for amounts in (part.requests, part.limits):
                    if name in amounts:
                        amounts[name] = min(amounts[name], most)
    for name, amount in before.items():
        _give_back(found, name, amount, of_containers)
    for part in found.parts.values():
        for item in of_containers:
            _limit(part, item)
    for item in items:
        if item.type == "Pod":
            _allow_whole(found, item)
    made = found.made()
    return None if refusals(made, ranges) else made


def _limit(part: _Part, item: LimitRangeItem) -> None:
    """Keep the limits within the ratio of *item*, and above the requests."""
    for name, ratio in (item.max_limit_request_ratio or {}).items():
        if name in part.limits and name in part.requests:
            part.limits[name] = min(part.limits[name], _times(part.requests[name], ratio))
    for name, amount in part.requests.items():
        if name in part.limits:
            part.limits[name] = max(part.limits[name], amount)


def _give_back(found: _Parts, name: str, most: int, items: Sequence[LimitRangeItem]) -> None:
    """Lower the requests for *name* until they add up to *most*, none below its minimum; as far as that goes."""
    least = max((_amounts(item.min).get(name, 0) for item in items), default=0)
    for _step in range(_MOST_STEPS):
        excess = found.total().requests.get(name, 0) - most
        part = max(found.parts.values(), key=lambda one: one.requests.get(name, 0))
        room = part.requests.get(name, 0) - max(least, 1)
        if excess <= 0 or room <= 0:
            return
        part.requests[name] -= min(excess, room)


def _allow_whole(found: _Parts, item: LimitRangeItem) -> None:
    """Raise requests to what *item* asks of the pod as a whole, and lower limits."""
    parts = found.parts.values()
    for name, least in _amounts(item.min).items():
        lacking = least - found.total().requests.get(name, 0)
        part = max(parts, key=lambda one: one.requests.get(name, 0))
        if lacking > 0 and name in part.requests:
            part.requests[name] += lacking
            if name in part.limits:
                part.limits[name] = max(part.limits[name], part.requests[name])
    for name, ratio in (item.max_limit_request_ratio or {}).items():
        for _step in range(_MOST_STEPS):
            total = found.total()
            excess = total.limits.get(name, 0) - _times(total.requests.get(name, 0), ratio)
            part = max(parts, key=lambda one: one.limits.get(name, 0) - one.requests.get(name, 0))
            room = part.limits.get(name, 0) - part.requests.get(name, 0)
            if excess <= 0 or room <= 0:
                break
            part.limits[name] -= min(excess, room)


def _with_lower_minimum(one: LimitRange, pod: Pod) -> LimitRange:
    """*one* with minimums that *pod* keeps."""
    parts = _parts(pod)
    items = []
    for item in one.spec.limits or ():
        of = {"Container": list(parts.parts.values()), "Pod": [parts.total()]}.get(item.type, [])
        least = dict(item.min or {})
        for name, quantity in least.items():
            there = [amounts[name] for part in of for amounts in (part.requests, part.limits) if name in amounts]
            if there and min(there) < _amount(name, quantity):
                least[name] = quantity_text(name, min(there))
        items.append(item if least == (item.min or {}) else structs.replace(item, min=least))
    return structs.replace(one, spec=structs.replace(one.spec, limits=tuple(items)))


def _takes_back(old: Pod, new: Pod, allowed: Pod) -> bool:
    """Whether *allowed* requests more of something that *new* requests less of than *old*."""
    before, wanted, after = (_total(one, "requests") for one in (old, new, allowed))
    return any(after.get(name, 0) > amount < before.get(name, 0) for name, amount in wanted.items())


def _differences(new: Pod, allowed: Pod) -> Iterator[str]:
    """What *allowed* has otherwise than *new*, in words."""
    for attribute in ("requests", "limits"):
        before, after = _total(new, attribute), _total(allowed, attribute)
        for name, amount in after.items():
            if amount != before.get(name, 0):
                yield f"{attribute.removesuffix('s')} {name} {amount_text(name, amount)}"
