"""Masks and scores kept per pod signature, caught up from the log of changed rows.

Pods that a profile cannot tell apart get the same answers, so these are computed once and afterwards only for the rows
that changed. What is returned always equals the plain evaluation in `scheduling_cycle` (a property test holds them
together); whatever is out of the ordinary (narrowed or rejected by pre_filter, a nominated node, nothing feasible) is
left to it.

The contract that makes this possible: a plugin with ``depends_on`` and ``sign`` answers about a node from the pod's
signature and the named inputs alone, and its normalize_score from which scores occur, not from how often.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from random import Random

import numpy as np
from attrs import Factory, define, evolve, field

from trio_sched.engine.asked_kinds import AskedKinds
from trio_sched.engine.decision import Decision, Placed, Unplaced
from trio_sched.engine.filtering import (
    CycleFailed,
    NominatedPods,
    PreFilterOutcome,
    ask_filter,
    check_failures,
    run_pre_filters,
)
from trio_sched.engine.host_selection import select_host
from trio_sched.engine.kept_answer import KeptAnswer, Normalized
from trio_sched.engine.nominated_pass import NominatedRows, beside_nominated
from trio_sched.engine.per_node_memo import PerNodeMemo
from trio_sched.engine.profile import FilterCaller, Profile, ScoreCaller
from trio_sched.engine.scoring import check_range, normalize, run_pre_scores, run_scores
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.verdicts import Input
from trio_sched.snapshot.arrays import BoolArray, Int64Array
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable

KEEP = 200
"""Signatures kept; the least recently used one goes first."""

Signature = tuple[Hashable, ...]


class NotKept(Exception):
    """This signature is left to the plain evaluation."""


@define(eq=False)
class KeptAnswers:
    """The kept answers of one profile."""

    profile: Profile
    table: NodeTable
    asked: AskedKinds = field(factory=AskedKinds)
    nominated_rows: NominatedRows = field(default=Factory(lambda self: NominatedRows(self.table), takes_self=True))
    keep: int = KEEP
    _answers: OrderedDict[Signature, KeptAnswer] = field(factory=OrderedDict)
    _left_to_plain: OrderedDict[Signature, None] = field(factory=OrderedDict)
    """Signatures of which nothing is kept; apart, so that the pods of a DaemonSet do not push the others out."""

    def decide(self, pod: Pod, signature: Signature, nominated: NominatedPods, rng: Random) -> Decision | None:
        """Decide on *pod* if that can be done from what is kept.

        Returns:
            The decision, or None if the plain evaluation must say.
        """
        with self.asked.recording():
            answer = self._answer(pod, signature)
        if answer is None or self.table.count == 0 or pod.nominated_node_name:
            return None
        try:
            with self.asked.recording():
                answer.catch_up()
            return self._decide(answer, pod, nominated, rng)
        except NotKept:
            return None
        except CycleFailed:
            # Scores are kept for nodes that no filter lets pass too, and there a plugin may well have no answer.
            del self._answers[signature]
            return None

    def forget(self) -> None:
        """Begin anew: plugins may answer differently now, for reasons that neither pods nor nodes show."""
        self._answers.clear()
        self._left_to_plain.clear()

    def remember_unfit(self, signature: Signature, outcome: Unplaced) -> None:
        """The plain evaluation has found that pods of this signature fit nowhere; the next one need not ask it."""
        answer = self._answers.get(signature)
        if answer is None or answer.memos or outcome.state is None:
            return
        if {caller.plugin for caller in answer.fresh_filters} <= outcome.state.skip_filter:
            answer.remember_unfit(outcome)

    def _decide(self, answer: KeptAnswer, pod: Pod, nominated: NominatedPods, rng: Random) -> Decision | None:
        """Combine what is kept with plugins that must be asked anew, and with pods nominated to some of the nodes.

        Raises:
            NotKept: a pre_filter narrows or rejects.
            CycleFailed: a plugin failed.
        """
        table, state = self.table, answer.state.fork()
        if _restricts(run_pre_filters(answer.fresh_pre_filters, pod, NodeColumns(table), state)):
            raise NotKept
        passes = _passes(answer, pod, nominated, state, self.nominated_rows)
        is_kept = passes is answer.passes
        positions = answer.feasible if is_kept else np.flatnonzero(passes)
        if len(positions) == 0:
            unfit = answer.unfit if is_kept else None
            return None if unfit is None else evolve(unfit, state=state)
        if len(positions) == 1:
            return Placed(table.names[int(positions[0])], state, table.count, 1)
        everywhere = len(positions) == table.count
        nodes = NodeColumns(table) if everywhere else NodeColumns(table).take(positions)
        run_pre_scores(answer.fresh_pre_scores, pod, nodes, state)
        fresh = [scorer for scorer in answer.fresh_scores if scorer.plugin not in state.skip_score]
        answer.normalize_again()
        if is_kept and not fresh and not answer.memos:
            row = select_host(answer.ranks, rng)
            return Placed(table.names[row], state, table.count, len(positions))
        totals = _totals(answer, pod, positions, state, is_kept)
        totals = totals + run_scores(fresh, pod, nodes, state).totals
        return Placed(table.names[int(positions[select_host(totals, rng)])], state, table.count, len(positions))

    def _answer(self, pod: Pod, signature: Signature) -> KeptAnswer | None:
        answers = self._answers
        found = answers.get(signature)
        if found is not None and not found.is_outdated:
            answers.move_to_end(signature)
            return found
        if signature in self._left_to_plain:
            return None
        try:
            answer = _new_answer(self.profile, self.table, pod, signature)
        except (NotKept, CycleFailed):
            answers.pop(signature, None)
            self._left_to_plain[signature] = None
            if len(self._left_to_plain) > self.keep:
                self._left_to_plain.popitem(last=False)
            return None
        answers[signature] = answer
        answers.move_to_end(signature)
        if len(answers) > self.keep:
            answers.popitem(last=False)
        return answer


def _new_answer(profile: Profile, table: NodeTable, pod: Pod, signature: Signature) -> KeptAnswer:
    """Ask the pre_filters and pre_scores once and sort the plugins by what their answers depend on.

    Raises:
        NotKept: a pre_filter narrows or rejects, or node-by-node filters have to be asked about every pod.
    """
    kept = profile.kept_plugins(signature)
    per_node = [caller for caller in profile.filter if caller.per_node]
    if per_node and (profile.percentage_of_nodes_to_score or any(caller.plugin not in kept for caller in per_node)):
        # Asking node by node costs so much more than all that could be kept that it must not be done twice.
        raise NotKept
    answer = KeptAnswer(profile, table, pod, CycleState())
    nodes, state = NodeColumns(table), answer.state
    if _restricts(run_pre_filters([c for c in profile.pre_filter if c.plugin in kept], pod, nodes, state)):
        raise NotKept
    run_pre_scores([c for c in profile.pre_score if c.plugin in kept], pod, nodes, state)
    for caller in profile.filter:
        if caller.plugin not in kept:
            answer.fresh_filters.append(caller)
        elif caller.plugin in answer.state.skip_filter:
            continue
        elif caller.per_node:
            answer.memos.append(PerNodeMemo(caller, _on_usage(caller)))
        else:
            (answer.usage_filters if _on_usage(caller) else answer.node_filters).append(caller)
    for scorer in profile.score:
        if scorer.plugin not in kept:
            answer.fresh_scores.append(scorer)
        elif scorer.plugin in answer.state.skip_score:
            continue
        elif scorer.per_node:
            answer.memos.append(PerNodeMemo(scorer, _on_usage(scorer)))
        elif scorer.normalize is not None:
            empty = np.zeros(0, dtype=np.int64)
            answer.normalized.append(Normalized(scorer, _on_usage(scorer), empty, empty))
        else:
            (answer.usage_scores if _on_usage(scorer) else answer.node_scores).append(scorer)
    answer.on_all_nodes = any(Input.ALL_NODES in profile.inputs[plugin] for plugin in kept)
    answer.fresh_pre_filters = tuple(c for c in profile.pre_filter if c.plugin not in kept)
    answer.fresh_pre_scores = tuple(c for c in profile.pre_score if c.plugin not in kept)
    return answer


def _restricts(outcome: PreFilterOutcome) -> bool:
    return outcome.rejected is not None or outcome.node_names is not None


def _on_usage(caller: FilterCaller | ScoreCaller) -> bool:
    return caller.inputs is not None and Input.USAGE in caller.inputs


def _passes(
    answer: KeptAnswer, pod: Pod, nominated: NominatedPods, state: CycleState, rows: NominatedRows
) -> BoolArray:
    """Shape (nodes,): where *pod* fits; the kept mask itself if nobody has anything to add.

    Raises:
        CycleFailed: a plugin failed.
    """
    skipped = state.skip_filter
    filters = [caller for caller in answer.fresh_filters if caller.plugin not in skipped]
    memos = answer.memos and [memo for memo in answer.memos if isinstance(memo.caller, FilterCaller)]
    if not filters and not memos and not nominated:
        return answer.passes
    table = answer.table
    passes = answer.passes.copy()
    for caller in filters:
        verdicts = ask_filter(caller, pod, NodeColumns(table), state)
        if verdicts.may_fail:
            check_failures(caller, verdicts, passes)
        passes &= verdicts.passes
    for memo in memos:
        passes &= memo.filter(pod, table, passes, state)
    names = [name for name in nominated if name in table.row_of and passes[table.row_of[name]]]
    if names:
        statuses = beside_nominated(answer.profile, pod, state, nominated, names, rows)
        for name, status in zip(names, statuses, strict=True):
            passes[table.row_of[name]] = status is None
    return passes


def _totals(answer: KeptAnswer, pod: Pod, positions: Int64Array, state: CycleState, is_kept: bool) -> Int64Array:
    """What the kept scores of the nodes at *positions* come to.

    Raises:
        CycleFailed: a plugin failed, or left the range of scores.
    """
    totals: Int64Array
    if is_kept or all(kept.is_same_over(positions) for kept in answer.normalized):
        totals = answer.ranks[positions]
    else:
        totals = answer.node_total[positions] + answer.usage_total[positions]
        for kept in answer.normalized:
            totals += answer.normalized_over(kept, positions) * kept.caller.weight
    for memo in answer.memos:
        if isinstance(memo.caller, ScoreCaller):
            raw = memo.score(pod, answer.table, positions, state)
            scores = normalize(memo.caller, pod, raw, state) if memo.caller.normalize is not None else raw
            check_range(memo.caller.plugin, scores)
            totals += scores * memo.caller.weight
    return totals
