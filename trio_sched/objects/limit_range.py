"""LimitRanges: what the containers, pods and claims of a namespace may request at least and at most."""

from msgspec import Struct, field

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import NamespacedObject


class LimitRangeItem(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``spec.limits``; *type* is ``Container``, ``Pod`` or ``PersistentVolumeClaim``."""

    type: str = ""
    max: dict[str, Quantity] | None = None
    min: dict[str, Quantity] | None = None
    default: dict[str, Quantity] | None = None
    default_request: dict[str, Quantity] | None = None
    max_limit_request_ratio: dict[str, Quantity] | None = None


class LimitRangeSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a LimitRange."""

    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange(NamespacedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` LimitRange."""

    spec: LimitRangeSpec = field(default_factory=LimitRangeSpec)
