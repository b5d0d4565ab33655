"""``pluginConfig`` of VolumeBinding."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.config.decode import Given, GoType, Integer
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.omit_empty import omit_empty
from trio_sched.config.plugin_arguments import utilization_shape
from trio_sched.config.problems import invalid
from trio_sched.plugin_api.arguments import UtilizationShapePoint, VolumeBindingArgs

_SHAPE_GATE: Final = "StorageCapacityScoring"
_DEFAULT_SHAPE: Final = (
    UtilizationShapePoint(utilization=0, score=10),
    UtilizationShapePoint(utilization=100, score=0),
)

FIELDS: Final[Mapping[str, GoType]] = {"bindTimeoutSeconds": Integer(64), "shape": utilization_shape.SHAPE}
"""The fields of ``v1.VolumeBindingArgs``."""


def defaults(gates: FeatureGates) -> VolumeBindingArgs:
    """The defaults; there is a shape only if *gates* have StorageCapacityScoring enabled."""
    return VolumeBindingArgs(shape=_DEFAULT_SHAPE if gates.enabled(_SHAPE_GATE) else None)


def convert(given: Given, default: VolumeBindingArgs) -> VolumeBindingArgs:
    """The fields that are *given*, the others from *default*; an empty shape gives way to one in *default*."""
    shape = utilization_shape.convert(given.get("shape"))
    return VolumeBindingArgs(
        bind_timeout_seconds=given.get("bindTimeoutSeconds", default.bind_timeout_seconds),
        shape=shape or default.shape or shape,
    )


def validate(args: VolumeBindingArgs, at: str, gates: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(f"{at}bindTimeoutSeconds", args.bind_timeout_seconds, detail)
    if gates.enabled(_SHAPE_GATE):
        yield from utilization_shape.validate(args.shape, f"{at}shape")
    elif args.shape is not None:
        points: list[dict[str, int]] = [{"Utilization": p.utilization, "Score": p.score} for p in args.shape]
        detail = f"unexpected field `shape`, remove it or turn on the feature gate {_SHAPE_GATE}"
        yield invalid(f"{at}shape", points, detail)


def dump(args: VolumeBindingArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    shape = utilization_shape.dump(args.shape)
    return {"bindTimeoutSeconds": args.bind_timeout_seconds, **omit_empty(shape=shape)}
