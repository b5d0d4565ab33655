"""Taints on nodes and the tolerations of pods."""

from msgspec import Struct

_INT64_MAX = 2**63 - 1


class Taint(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``node.spec.taints``."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``pod.spec.tolerations``; an empty *key* or *effect* tolerates all of them."""

    key: str = ""
    operator: str = ""
    """One that is not known tolerates nothing."""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint, *, numeric: bool = False) -> bool:
        """Whether a pod with this toleration accepts *taint*.

        Args:
            taint: the taint in question.
            numeric: whether ``Lt`` and ``Gt`` mean anything (feature gate TaintTolerationComparisonOperators).
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Lt" | "Gt" if numeric:
                pass
            case _:
                return False
        wanted, found = canonical_int64(self.value), canonical_int64(taint.value)
        if wanted is None or found is None:
            return False
        return found < wanted if self.operator == "Lt" else found > wanted


def canonical_int64(text: str) -> int | None:
    """The integer in *text* if it is in canonical form (no ``+``, no leading zeros), else None."""
    digits = text[1:] if text.startswith("-") else text
    if (
        not (digits.isascii() and digits.isdigit())
        or len(digits) > 19
        or (len(digits) > 1 and digits[0] == "0")
        or text == "-0"
    ):
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None
