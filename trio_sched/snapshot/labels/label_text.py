"""Label values as texts: which are valid, and which are numbers.

Source: label and node selector validation of Kubernetes 1.36.
"""

import re

from trio_sched.objects.pod_requests import is_label_text

_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_MAX_DIGITS = 1000
"""More, of which all but 20 would be zeros, are in no label: values have at most 63 characters."""


def is_label_value(text: str) -> bool:
    """Whether *text* may be the value of a label."""
    return not text or (len(text) <= 63 and is_label_text(text))


def parse_int64(text: str) -> int | None:
    """*text* as Kubernetes reads numbers in labels: base 10, a sign and leading zeros allowed, 64 bits; else None."""
    if not _INT.fullmatch(text) or len(text) > _MAX_DIGITS:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
