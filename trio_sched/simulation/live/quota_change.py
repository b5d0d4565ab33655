"""What would let a workload create pods that a quota does not allow, from the message of the API server."""

from __future__ import annotations

import json
import re
import shlex
from typing import Final

from trio_sched.objects.amounts.quantity import QuantityError, parse_nano
from trio_sched.objects.amounts.quantity_text import format_nano, style_of

_EXCEEDED: Final = re.compile(
    r"exceeded quota: (?P<quota>[^\s,]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)


def larger_quota(message: str, namespace: str, pods: int) -> str:
    """The command that makes room for so many more *pods*; empty if *message* is about no quota."""
    found = _EXCEEDED.search(message)
    if found is None:
        return ""
    try:
        requested, used, limited = (_amounts(found[part]) for part in ("requested", "used", "limited"))
        hard = {}
        for name, amount in requested.items():
            needed = parse_nano(used.get(name, "0")) + parse_nano(amount) * max(pods, 1)
            if needed > parse_nano(limited.get(name, "0")):
                hard[name] = format_nano(needed, style_of(amount))
    except QuantityError:
        return ""
    patch = shlex.quote(json.dumps({"spec": {"hard": hard}}, separators=(",", ":")))
    quota = f"{shlex.quote(found['quota'])} -n {shlex.quote(namespace)}"
    return f"kubectl patch resourcequota {quota} --type=merge -p {patch}"


def _amounts(text: str) -> dict[str, str]:
    """``requests.cpu=1,pods=2`` by name."""
    pairs = (one.partition("=") for one in text.split(","))
    return {name: amount for name, _equals, amount in pairs}
