"""What a pod requests and is limited to, as a whole."""

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import Quantity, parse_nano
from trio_sched.objects.amounts.quantity_text import format_nano, style_of
from trio_sched.simulator.pods.containers import containers_of


def pod_total(spec: Json, kind: str) -> dict[str, int]:
    """The ``requests`` or ``limits`` of a pod that broke no rule, in nano units by resource."""
    total = aggregated(spec, kind) | _amounts(spec, kind)
    for name, quantity in (spec.get("overhead") or {}).items():
        if kind == "requests" or name in total:
            total[name] = total.get(name, 0) + parse_nano(quantity)
    return total


def aggregated(spec: Json, kind: str) -> dict[str, int]:
    """The ``requests`` or ``limits`` that the containers of a pod have at most at any time, in nano units by resource.

    Raises:
        QuantityError: one is no quantity.
    """
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, kind)
        if container.get("restartPolicy") == "Always":  # it goes on running beside those after it
            _add(running, amounts)
            amounts = dict(running)
        else:
            amounts = {name: amounts.get(name, 0) + running.get(name, 0) for name in {*amounts, *running}}
        _raise(starting, amounts)
    for container in spec.get("containers") or ():
        _add(running, _amounts(container, kind))
    _raise(running, starting)
    return running


def aggregated_quantities(spec: Json, kind: str) -> dict[str, str]:
    """The sums as quantities, written as the first container writes them.

    Raises:
        QuantityError: one is no quantity.
    """
    written: dict[str, Quantity] = {}
    for container in containers_of(spec):
        for name, quantity in ((container.get("resources") or {}).get(kind) or {}).items():
            if name not in written or not parse_nano(written[name]):
                written[name] = quantity
    return {name: format_nano(nano, style_of(written[name])) for name, nano in aggregated(spec, kind).items()}


def _amounts(holder: Json, kind: str) -> dict[str, int]:
    listed = (holder.get("resources") or {}).get(kind) or {}
    return {name: parse_nano(quantity) for name, quantity in listed.items()}


def _add(to: dict[str, int], amounts: dict[str, int]) -> None:
    for name, amount in amounts.items():
        to[name] = to.get(name, 0) + amount


def _raise(to: dict[str, int], amounts: dict[str, int]) -> None:
    for name, amount in amounts.items():
        to[name] = max(to.get(name, 0), amount)
