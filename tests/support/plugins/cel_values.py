"""Writes values of expressions as the recordings do."""

import json
import math
from fractions import Fraction
from typing import Any

from trio_sched.cel.values.network import Cidr, Ip
from trio_sched.cel.values.quantity import CelQuantity
from trio_sched.cel.values.semver import Semver
from trio_sched.cel.values.times import Duration, Timestamp
from trio_sched.cel.values.urls import Url
from trio_sched.cel.values.values import CelMap, Failed, NamedFormat, Optional, TypeValue, Uint


def written(value: Any) -> str:
    """*value* as the recordings have it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{int(value)}u"
        case int():
            return str(value)
        case float():
            if math.isnan(value) or math.isinf(value):
                return f'double("{"NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}")'
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
        case list():
            return f"[{', '.join(map(written, value))}]"
        case CelMap():
            entries = sorted((written(key), written(part)) for key, part in value.items())
            return "{" + ", ".join(f"{key}: {part}" for key, part in entries) + "}"
        case TypeValue():
            return value.name
        case Optional():
            return "optional.none()" if value.is_none else f"optional.of({written(value.value)})"
        case CelQuantity():
            return f'quantity("{_decimal(value)}")'
        case Failed():
            return f'failed("{value.problem}")'
        case NamedFormat():
            return f'format("{value.name}")'
    names = {Timestamp: "timestamp", Duration: "duration", Semver: "semver", Ip: "ip", Cidr: "cidr", Url: "url"}
    return f'{names[type(value)]}("{value}")'


def _decimal(quantity: CelQuantity) -> str:
    number = Fraction(quantity.digits) * Fraction(10) ** quantity.exponent
    sign = "-" if number < 0 else ""
    whole, rest = divmod(abs(number), 1)
    digits = ""
    while rest:
        rest *= 10
        digit, rest = divmod(rest, 1)
        digits += str(int(digit))
    return f"{sign}{int(whole)}{'.' + digits if digits else ''}"
