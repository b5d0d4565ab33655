"""An `Explanation` as plain data: what ``-o json`` prints, the endpoint sends, and text is written from.

The schema is ``docs/reference/explanation.schema.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import to_builtins

from trio_sched.documents.json_values import Json
from trio_sched.engine.evaluation.pod_explanation import NodeScore, PodExplanation
from trio_sched.explanation.analysis import Analysis, FailingClause
from trio_sched.explanation.commands import ANY_CLUSTER, REPLACES_PODS, Kubectl, Workload, commands, manifest
from trio_sched.explanation.explanation import Explanation, NodeAnswer, Waiting
from trio_sched.explanation.owners import controller_of
from trio_sched.explanation.patches import patch_of
from trio_sched.explanation.remedies import Remedy
from trio_sched.explanation.touches import Touch
from trio_sched.explanation.trial import EditedObject, Outcome
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import some_names

_DEFAULT_GRACE_SECONDS: Final = 30
"""What the API server gives to pods that say nothing."""
_MAX_CAUSES: Final = 4
"""Requirements that are named as causes of different nodes."""
_MAX_TOGETHER: Final = 2
"""Requirements that are named together as the cause of others than most nodes."""
_MAX_REFUSED: Final = 2
"""What admission refuses, of what is named as standing in the way."""


def explanation_as_data(one: Explanation, workload: Workload | None = None, kubectl: Kubectl = ANY_CLUSTER) -> Json:
    """*one* for JSON and YAML.

    Args:
        one: what was found out.
        workload: what makes the pod.
        kubectl: for which cluster commands are.
    """
    analysis, pod = one.analysis, one.pod
    return {
        "pod": pod.key,
        "node": None if one.is_pending else pod.node_name,
        "schedulerName": pod.scheduler_name,
        "workload": None if workload is None else {"kind": workload.kind, "name": workload.name},
        "waiting": None if one.waiting is None else _waiting(one.waiting),
        "events": list(one.events),
        "cause": _cause(one) if one.is_pending else None,
        "nodes": len(analysis.nodes),
        "passing": int(np.count_nonzero(analysis.passes)),
        "funnel": list(_funnel(analysis)),
        "clauses": [_clause(one, analysis, clause) for clause in analysis.clauses],
        "groups": list(_groups(analysis)),
        "remedies": [_remedy(remedy, pod, workload, kubectl) for remedy in one.remedies.found],
        "tried": list(one.remedies.tried),
        "triedAll": one.remedies.is_complete,
        "onNodes": [_on_node(analysis, answer) for answer in one.on_nodes],
        "scores": _scores(one.plugins),
        "notes": list(one.notes),
    }


def _waiting(waiting: Waiting) -> Json:
    return {
        "state": waiting.state,
        "attempts": waiting.attempts,
        "pendingSeconds": waiting.since_seconds,
        "againInSeconds": waiting.again_in_seconds,
        "ahead": waiting.ahead,
        "turnInSeconds": waiting.turn_in_seconds,
        "details": list(waiting.details),
        "history": list(waiting.history),
    }


# --- the cause ------------------------------------------------------------------------------------------------------


def _cause(one: Explanation) -> Json:
    return {
        "text": cause_text(one),
        "reasons": [clause.clause.reason for clause in one.blocking] or [_reason(one)],
        "clauses": [clause.title for clause in one.blocking],
        "fitsNow": one.outcome.node_name if one.fits_now else None,
        "mayEvict": [pod.key for pod in one.outcome.victims],
    }


def _reason(one: Explanation) -> str:
    if one.fits_now:
        return "FitsNow"
    return "PluginFailed" if len(one.analysis.nodes) else "NoNodes"


def cause_text(one: Explanation) -> str:
    """Why the pod is pending, in a sentence or two."""
    analysis = one.analysis
    total = count_of_nodes(len(analysis.nodes))
    if one.fits_now:
        count = int(np.count_nonzero(analysis.passes))
        return f"nothing keeps it: it fits on {count} of {total} now, {one.outcome.node_name} for one"
    blocking = one.blocking
    if not blocking:
        return f"a plugin fails: {one.outcome.message}" if len(analysis.nodes) else "there are no nodes"
    together = ", together" if len(blocking) > 1 else ""
    titles = " and ".join(clause.title for clause in blocking) + together
    otherwise = analysis.passes_without(blocking)
    evidence = "; ".join(filter(None, (clause.cause(otherwise) for clause in blocking)))
    if any(clause.is_of_pod for clause in blocking):
        return f"{titles}. {evidence[:1].upper()}{evidence[1:]}"
    passing = f"{np.count_nonzero(otherwise)} of {len(analysis.nodes)} nodes pass everything else"
    text = f"{titles}. {passing}; {evidence}" if evidence else f"{titles}. {passing}"
    text += _awaited(one) if one.awaited is not None and one.awaited.clause in blocking else ""
    text += "".join(_other_causes(analysis, blocking))
    text += "".join(f"; {refused}" for refused in one.remedies.refused[:_MAX_REFUSED])
    text += _rivals(one)
    if one.pod.nominated_node_name and one.waiting is not None:
        text += "".join(f". {line[:1].upper()}{line[1:]}" for line in one.waiting.details)
    elif one.outcome.victims:
        text += f". It may evict {_evicted(one.outcome)} {one.outcome.node_name}"
        text += f", which may take {max(map(_grace_seconds, one.outcome.victims))} s to end"
    elif one.if_preempting.victims:
        policy = "its preemptionPolicy Never keeps it from evicting"
        text += f"; {policy} {_evicted(one.if_preempting)} {one.if_preempting.node_name}"
    elif ending := _ending(one):
        names = some_names([pod.key for pod in ending])
        text += f". {names} on {ending[0].node_name} {'is' if len(ending) == 1 else 'are'} ending; then it fits"
    return text


def _awaited(one: Explanation) -> str:
    """The pending pods that have to run first, and why the first of them does not."""
    awaited = one.awaited
    assert awaited is not None
    first, names = awaited.first, some_names([pod.key for pod in awaited.pods])
    why = " and ".join(clause.title for clause in first.blocking)
    if first.fits_now:
        why = f"it fits {first.outcome.node_name} now"
    if len(awaited.pods) > 1:
        return f"; {names} do, and are pending themselves ({first.pod.name}: {why}), so one has to run first"
    return f"; {names} does, and is pending itself ({why}), so it has to run first"


def _rivals(one: Explanation) -> str:
    """Which pending pods come first where it could be, those of a higher priority by name and number."""
    found = {pod.key: pod for remedy in one.remedies.found if remedy.touches < Touch.NEW_NODE for pod in remedy.rivals}
    for awaited in one.awaited.pods if one.awaited is not None else ():
        found.pop(awaited.key, None)
    if not found:
        return ""
    priority = one.analysis.pod.priority
    before = [f"{pod.key} (priority {pod.priority})" for pod in found.values() if pod.priority > priority]
    others = [pod.key for pod in found.values() if pod.priority <= priority]
    text = f"; {some_names(before)}, pending too, {_comes(before)} before it" if before else ""
    return text + (f"; {some_names(others)}, pending too, could come before it" if others else "")


def _comes(names: Sequence[str]) -> str:
    return "comes" if len(names) == 1 else "come"


def _ending(one: Explanation) -> Sequence[Pod]:
    """The pods without which it would run, if they are ending anyway."""
    for remedy in one.remedies.found:
        pods = [edit.old for edit in remedy.edited if edit.kind == "Pod" and edit.new is None]
        if pods and len(pods) == len(remedy.edited) and all(pod.metadata.deletion_timestamp for pod in pods):
            return pods
    return ()


def _evicted(outcome: Outcome) -> str:
    """The victims, up to the name of the node; pods of groups are also on others."""
    groups = [f"{name} ({count} pod{'' if count == 1 else 's'})" for name, count in outcome.evicted_groups.items()]
    return f"{some_names([*groups, *outcome.evicted_pods])} {'for a place on' if groups else 'on'}"


def _grace_seconds(pod: Pod) -> int:
    """How long *pod* may take to end once it is evicted."""
    given = pod.spec.termination_grace_period_seconds
    return _DEFAULT_GRACE_SECONDS if given is None else max(given, 0)


def _other_causes(analysis: Analysis, blocking: Sequence[FailingClause]) -> Iterator[str]:
    """What keeps it from nodes where something of *blocking* is met, the fewest requirements first.

    Requirements that are given come last, and only by themselves; those of a DaemonSet's pod for its node do not count.
    """
    owner, same = controller_of(analysis.pod), set(map(id, blocking))
    is_of_daemon_set = owner is not None and owner.kind == "DaemonSet"
    others = [
        (clauses, count)
        for clauses, count in analysis.failing_sets()[:_MAX_CAUSES]
        if len(clauses) <= max(len(blocking), _MAX_TOGETHER)
        and not same <= set(map(id, clauses))
        and not (any(one.clause.is_given for one in clauses) and (len(clauses) > 1 or is_of_daemon_set))
    ]
    for clauses, count in others:
        yield f"; {count} more pass all but {' and '.join(one.title for one in clauses)}"
        if len(others) == len(clauses) == 1:
            evidence = clauses[0].cause(analysis.passes_without(clauses))
            yield f": {evidence}" if evidence else ""


def count_of_nodes(nodes: int) -> str:
    """``1 node``, ``60 nodes``."""
    return f"{nodes} node{'' if nodes == 1 else 's'}"


def _funnel(analysis: Analysis) -> Iterator[Json]:
    """How many nodes each clause leaves out, one after the other, the cause last."""
    left = np.ones(len(analysis.nodes), dtype=np.bool_)
    for clause in reversed(analysis.clauses):
        gone = int(np.count_nonzero(left & clause.fails))
        if gone:
            yield {"clause": clause.title, "nodes": gone}
            left &= ~clause.fails


# --- the evidence ---------------------------------------------------------------------------------------------------


def _clause(one: Explanation, analysis: Analysis, clause: FailingClause) -> Json:
    together = one.blocking if clause in one.blocking else (clause,)
    otherwise = analysis.passes_without(together)
    if clause.clause.fails is not None and not (otherwise & clause.fails).any():
        otherwise = clause.fails
    return {
        "reason": clause.clause.reason,
        "title": clause.title,
        "plugin": clause.plugin or None,
        "pass": len(analysis.nodes) - int(np.count_nonzero(clause.fails)),
        "passWithoutItAlone": clause.alone,
        "cause": clause.cause(otherwise),
        "details": clause.details(),
        "problems": list(clause.problems),
    }


def _groups(analysis: Analysis) -> Iterator[Json]:
    for clauses, count in analysis.failing_sets():
        if count:
            where = analysis.passes_without(clauses)
            for clause in clauses:
                where &= clause.fails
            yield {"clauses": [clause.title for clause in clauses], "nodes": analysis.names(where)}


def _on_node(analysis: Analysis, answer: NodeAnswer) -> Json:
    here = np.zeros(len(analysis.nodes), dtype=np.bool_)
    position = analysis.nodes.position(answer.node)
    if position is not None:
        here[position] = True
    return {
        "node": answer.node,
        "exists": answer.exists,
        "nearest": answer.nearest or None,
        "clauses": [{"title": clause.title, "cause": clause.cause(here)} for clause in answer.clauses],
        "total": answer.score,
        "scores": [{"plugin": plugin, "score": score, "weight": weight} for plugin, score, weight in answer.scores],
    }


def _scores(plugins: PodExplanation) -> list[Json]:
    rows = [*plugins.best]
    named = {row.node for row in rows}
    rows += [row for row in plugins.others if row.node not in named]

    def of(row: NodeScore) -> Json:
        scores = [{"plugin": name, "score": one, "weight": plugins.weights[name]} for name, one in row.scores.items()]
        return {"node": row.node, "total": row.total, "scores": scores}

    return [of(row) for row in rows]


# --- what would help ------------------------------------------------------------------------------------------------


def _remedy(remedy: Remedy, pod: Pod, workload: Workload | None, kubectl: Kubectl) -> Json:
    outcome = remedy.outcome
    is_new = any(one.kind == "Node" and one.old is None and one.name == outcome.node_name for one in remedy.edited)
    return {
        "title": remedy.change.title,
        "node": None if is_new else outcome.node_name,
        "touches": "".join(part.capitalize() for part in remedy.touches.name.split("_")),
        "evicts": [victim.key for victim in outcome.victims],
        "notes": [*_template_notes(remedy, pod, workload), *remedy.notes],
        "edits": [_edit(one) for one in remedy.edited],
        "commands": commands(remedy.edited, pod, workload, kubectl),
    }


def _template_notes(remedy: Remedy, pod: Pod, workload: Workload | None) -> Iterator[str]:
    """What the command does besides, if it changes the template of the pod's workload."""
    is_of_pod = any(
        one.kind == "Pod" and not one.is_consequence and (one.namespace, one.name) == (pod.namespace, pod.name)
        for one in remedy.edited
    )
    if workload is not None and is_of_pod and workload.kind in REPLACES_PODS:
        yield f"the template changes, so {workload.kind} {workload.name} replaces all of its pods"


def _edit(one: EditedObject) -> Json:
    found: Json = {"kind": one.kind, "namespace": one.namespace or None, "name": one.name}
    if one.new is None:
        found["action"] = "delete"
    elif one.old is None:
        found |= {"action": "create", "object": manifest(one) if one.kind != "Pod" else to_builtins(one.new)}
    else:
        found |= {"action": "recreate" if one.recreate else "patch", "patch": patch_of(one.old, one.new)}
    if one.is_consequence:
        found["byController"] = True
    return found
