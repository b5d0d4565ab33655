"""The series about this build, its feature gates and the families themselves."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Final

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.daemon.metrics.families.families import Family
from trio_sched.daemon.metrics.series.scheduler_series import Collected

_BULK_GATES: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


def information(gates: FeatureGates) -> Collected:
    """What never changes; it is gone after a reset."""
    version = gates.binary_version
    major, minor, _patch = version.split(".")
    build = {
        "build_date": "",
        "compiler": sys.implementation.name,
        "git_commit": "",
        "git_tree_state": "",
        "git_version": f"v{version}",
        "go_version": f"python{platform.python_version()}",
        "major": major,
        "minor": minor,
        "platform": f"{sys.platform}/{platform.machine()}",
    }
    yield "kubernetes_build_info", [(tuple(build.values()), 1.0)]
    compatible = ".".join(map(str, gates.compatibility))
    yield "version_info", [((version, "kube", gates.version_text, compatible), 1.0)]
    features = [((name, stage), 0.0) for name, stage in _BULK_GATES.items()]
    features += [((gate.name, stage.stage or ""), float(gates.enabled(gate.name))) for gate, stage in gates.stages()]
    yield "kubernetes_feature_enabled", list(features)


def registered(families: Iterable[Family], *, disabled: int, unexpected: float) -> Collected:
    """The families: how many there are, are not shown, and have values of labels that are not allowed."""
    by_stability = Counter(family.stability for family in families if family.stability)
    yield "registered_metrics_total", [(("", stability), float(n)) for stability, n in by_stability.items()]
    yield "disabled_metrics_total", [((), float(disabled))]
    yield "hidden_metrics_total", [((), 0.0)]
    yield "cardinality_enforcement_unexpected_categorizations_total", [((), unexpected)]
