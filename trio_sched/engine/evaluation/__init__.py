"""One attempt to find a node: filters, scores, reservation, preemption.

In: a pod, a profile and a snapshot. Out: a decision, or why there is none. `scheduling_cycle` is the plain way,
`signature_cache` and `incremental_evaluation` give the same answers from what is known of equal pods.
"""
