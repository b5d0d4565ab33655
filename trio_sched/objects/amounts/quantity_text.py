"""Writing quantities in the canonical form of Kubernetes.

Source: ``Quantity.CanonicalizeBytes`` of Kubernetes.
"""

from enum import Enum

from trio_sched.objects.amounts.quantity import NANO, Quantity, split_quantity

_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class QuantityStyle(Enum):
    """How a quantity is written."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


def style_of(quantity: Quantity) -> QuantityStyle:
    """The style in which *quantity* is written.

    Raises:
        QuantityError: it is no quantity.
    """
    text = quantity.strip() if isinstance(quantity, str) else repr(quantity)
    if split_quantity(text).is_binary:
        return QuantityStyle.BINARY
    body = text.rstrip("0123456789")
    return (
        QuantityStyle.EXPONENT if body[-1:] in "eE+-" and body.lstrip("+-") and text != body else QuantityStyle.DECIMAL
    )


def format_nano(nano: int, style: QuantityStyle) -> str:
    """*nano* (in nano units) in canonical form.

    A binary form is used only for whole numbers from 1024 on, as there is no exact or shorter one below.
    """
    if style is QuantityStyle.BINARY and abs(nano) >= 1024 * NANO and nano % NANO == 0:
        number, power = nano // NANO, 0
        while number % 1024 == 0 and power < len(_BINARY) - 1:
            number, power = number // 1024, power + 1
        return f"{number}{_BINARY[power]}"
    if nano == 0:
        return "0"
    number, exponent = nano, -9
    while number % 1000 == 0:
        number, exponent = number // 1000, exponent + 3
    if exponent > 18:
        number, exponent = number * 10 ** (exponent - 18), 18
    if style is QuantityStyle.EXPONENT:
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL[exponent]}"
