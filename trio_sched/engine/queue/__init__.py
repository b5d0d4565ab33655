"""The scheduling queue: active, backoff and unschedulable pods, and what moves a pod between them.

In: pods, cluster events, and the results of attempts; the time is an argument. Out: the next pod to schedule, and when
to look again. `scheduling_queue` is what others call; the queueing hints of plugins are asked in `queueing_hints`.
"""
