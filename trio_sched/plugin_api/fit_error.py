"""The message that says why a pod fits on no node; the text is kube-scheduler's, to the letter."""

from collections import Counter

from trio_sched.plugin_api.verdicts import Diagnosis

NO_NODES_AVAILABLE = "no nodes available to schedule pods"


def fit_error(diagnosis: Diagnosis) -> str:
    """``0/12 nodes are available: 4 Insufficient memory, 8 node(s) had untolerated taint(s). …``."""
    text = f"0/{diagnosis.total_nodes} nodes are available:"
    if diagnosis.pre_filter_message:
        text += f" {diagnosis.pre_filter_message}."
    else:
        counts: Counter[str] = Counter()
        explicit = 0
        for status, nodes in diagnosis.statuses.counts():
            explicit += nodes
            for reason in status.all_reasons:
                counts[reason] += nodes
        others = diagnosis.total_nodes - explicit
        if others > 0:
            for reason in diagnosis.statuses.absent.all_reasons:
                counts[reason] += others
        # Sorted as text, so "10 x" comes before "2 y".
        lines = sorted(f"{count} {reason}" for reason, count in counts.items())
        if lines:
            text += f" {', '.join(lines)}."
    if diagnosis.post_filter_message:
        text += f" {diagnosis.post_filter_message}"
    return text
