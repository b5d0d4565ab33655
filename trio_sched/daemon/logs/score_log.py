"""Logs the scores of nodes, at ``-v=10``."""

from __future__ import annotations

import logging
from typing import Final

import numpy as np

from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.engine.evaluation.scoring import Scores
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.verbosity import V10

log = logging.getLogger(__name__)

MAX_NODES: Final = 100
"""Nodes per pod that have a line; those with the highest scores."""


def is_on() -> bool:
    """Whether scores are logged now."""
    return log.isEnabledFor(V10)


def log_scores(pod: Pod, nodes: NodeColumns, scores: Scores) -> None:
    """Log a line per node: its score, and the weighted score of each plugin."""
    best = np.argsort(-scores.totals, kind="stable")[:MAX_NODES].tolist()
    for position in best:
        plugins = {name: int(of[position]) * scores.weights[name] for name, of in scores.normalized.items()}
        fields = {"pod": pod.key, "node": nodes.name(position), "score": int(scores.totals[position])}
        log_line(log, V10, "Calculated node's final score for pod", fields | {"plugins": plugins})
    if len(nodes) > MAX_NODES:
        log_line(log, V10, "More nodes were scored", {"pod": pod.key, "nodes": len(nodes) - MAX_NODES})
