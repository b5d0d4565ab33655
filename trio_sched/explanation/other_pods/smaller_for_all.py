"""The largest requests with which not only the pod in question runs, but all pods of its workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from attrs import evolve

from trio_sched.explanation.pod_groups import TooManyDecisions
from trio_sched.explanation.rollouts import left_pending
from trio_sched.explanation.trial import CannotApply, Trial
from trio_sched.objects.amounts.quantity import NANO, QuantityError, parse_nano
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import ResourceOptions, nano_requests, to_amounts
from trio_sched.plugin_api.clauses import Change, edit_pod
from trio_sched.plugin_api.smaller_requests import smaller_request, with_request

_PARTS: Final = 64
"""In so many equal steps several resources become smaller together."""
_STEPS: Final[Mapping[str, int]] = {"cpu": 10, "memory": 1 << 20, "ephemeral-storage": 1 << 20}
"""How exact an amount is, in milli-CPU and bytes."""
_HUGE_PAGES: Final = "hugepages-"


def smaller_for_all(change: Change, trial: Trial, new: Pod) -> Change | None:
    """*change* with still smaller requests, the largest with which no pod of the workload is left pending.

    Args:
        change: lets the pod run, and leaves others pending.
        trial: in which it was made, and is undone.
        new: the pod as it leaves it.

    Returns:
        None if it makes no request smaller, or if that does not help the others.
    """
    options, count = trial.scheduler.cache.options, trial.count
    before, after = (to_amounts(nano_requests(one, options)) for one in (trial.pod, new))
    most = {name: amount for name, amount in after.amounts() if 0 < amount < before.amount(name)}
    if not most:
        return None

    def made(amounts: Mapping[str, int]) -> Change:
        found = change
        for name, amount in amounts.items():
            smaller = smaller_request(new, name, amount, options)
            first = smaller_request(trial.pod, name, most[name], options)
            if smaller is None:
                raise CannotApply(name)
            title = found.title.replace(first.title if first is not None else "", smaller.title, 1)
            edit = edit_pod(new, partial(_lowered, resource=name, amount=amount, options=options))
            found = evolve(found, title=title, edits=(*found.edits, edit))
        return found

    def helps(amounts: Mapping[str, int]) -> bool:
        try:
            with trial.made(made(amounts)) as edited:
                outcome = trial.decide_made(edited)
                pod = trial.subject(edited)
                return bool(outcome.node_name) and not left_pending(trial, edited, pod, outcome.node_name)
        except (CannotApply, TooManyDecisions):
            return False

    try:
        found = _largest_together(most, helps)
        return None if found is None else made(found)
    except CannotApply:
        return None
    finally:
        trial.count = count


def _lowered(pod: Pod, resource: str, amount: int, options: ResourceOptions) -> Pod:
    return with_request(pod, resource, amount, options) or pod


def _largest_together(most: Mapping[str, int], helps: Callable[[Mapping[str, int]], bool]) -> dict[str, int] | None:
    """The largest amounts that help, of several resources first all in the same proportion, then each."""

    def part(number: int) -> dict[str, int]:
        return {name: _rounded(name, amount * number // _PARTS) for name, amount in most.items()}

    few = _largest(0, _PARTS, 1, lambda number: helps(part(number)))
    if not few:
        return None
    found = part(few)

    def helps_with(name: str, amount: int) -> bool:
        return helps({**found, name: amount})

    for name, amount in most.items():
        found[name] = _largest(found[name], amount, _step(name), partial(helps_with, name))
    return found


def _largest(low: int, high: int, step: int, helps: Callable[[int], bool]) -> int:
    """The largest multiple of *step* above *low* and below *high* that helps; *low* if there is none."""
    while high - low > step:
        middle = _multiple((low + high) // 2, step)
        if middle <= low:
            break
        if helps(middle):
            low = middle
        else:
            high = middle
    return low


def _multiple(amount: int, step: int) -> int:
    return amount // step * step


def _rounded(name: str, amount: int) -> int:
    """*amount* in whole steps, one at least."""
    return max(_multiple(amount, _step(name)), _step(name))


def _step(name: str) -> int:
    if name.startswith(_HUGE_PAGES):
        try:
            return max(parse_nano(name.removeprefix(_HUGE_PAGES)) // NANO, 1)
        except QuantityError:
            return 1
    return _STEPS.get(name, 1)
