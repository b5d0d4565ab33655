"""What extenders say of a pod that fits by what the plugins say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trio_sched.engine.evaluation.extender_cycle import ExtenderVerdict
from trio_sched.explanation.analysis import clause_without_hook
from trio_sched.explanation.explanation import Explanation
from trio_sched.explanation.trial import Outcome
from trio_sched.plugin_api.clauses import Clause, some_names
from trio_sched.snapshot.arrays import BoolArray


def add_extenders(found: Explanation, verdicts: Sequence[ExtenderVerdict]) -> None:
    """Add to *found*, of a pod that fits, what extenders say of the nodes that pass."""
    analysis = found.analysis
    for one in verdicts:
        if one.problem and one.is_ignorable:
            found.notes.append(f"the extender {one.name} may be ignored, and could not be asked: {one.problem}")
            continue
        fails = analysis.passes.copy() if one.problem else np.zeros_like(analysis.passes)
        for name in one.refused:
            position = analysis.nodes.position(name)
            if position is not None:
                fails[position] = analysis.passes[position]
        if not fails.any():
            continue
        clause = clause_without_hook(_clause(one, fails), fails, alone=int(np.count_nonzero(fails)))
        analysis.clauses.insert(0, clause)
        analysis.passes = analysis.passes & ~fails
    left = analysis.names(analysis.passes)
    if not left:
        found.outcome = Outcome(message="extenders leave no node")
    elif found.outcome.node_name not in left:
        found.outcome = Outcome(node_name=left[0])


def _clause(one: ExtenderVerdict, fails: BoolArray) -> Clause:
    title = f"extender {one.name}"
    if one.problem:
        text = f"it has a say in this pod, and could not be asked from here: {one.problem}"
        return Clause(reason="ExtenderFailed", title=title, fails=fails, cause=text)
    reasons: dict[str, list[str]] = {}
    for name, why in one.refused.items():
        reasons.setdefault(why or "no reason", []).append(name)
    texts = [f"{why} ({some_names(names)})" for why, names in reasons.items()]
    return Clause(reason="ExtenderRefuses", title=title, fails=fails, cause=f"it says: {some_names(texts)}")
