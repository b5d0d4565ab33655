"""The families that kube-scheduler does not have."""

from __future__ import annotations

from typing import Final

from trio_sched.daemon.metrics.families.families import Family, Type
from trio_sched.daemon.metrics.recorder import ATTEMPT_BUCKETS

OWN_FAMILIES: Final = (
    Family(
        "trio_sched_signature_cache_decisions_total",
        Type.COUNTER,
        "Decisions about pods: hit came from the signature cache, miss did not although the pod has a signature, unsigned has none.",
        ("profile", "result"),
    ),
    Family("trio_sched_signature_cache_entries", Type.GAUGE, "Signatures whose results are cached.", ("profile",)),
    Family(
        "trio_sched_event_loop_lag_seconds",
        Type.HISTOGRAM,
        "How much later than due a task ran that wakes up every second.",
        buckets=ATTEMPT_BUCKETS,
    ),
    Family(
        "trio_sched_plugin_failures_total",
        Type.COUNTER,
        "Hooks that raised, or returned what they must not.",
        ("plugin", "hook"),
    ),
    Family(
        "trio_sched_plugin_skipped",
        Type.GAUGE,
        "1 while a plugin is skipped because it failed too often in a row; only of plugins with such a failure policy.",
        ("plugin",),
    ),
    Family(
        "trio_sched_plugin_sampled_calls_total",
        Type.COUNTER,
        "Calls of hooks in the tenth of the cycles in which they are timed.",
        ("plugin", "hook"),
    ),
    Family("trio_sched_plugin_sampled_seconds_total", Type.COUNTER, "What these calls took.", ("plugin", "hook")),
    Family(
        "trio_sched_watch_restarts_total",
        Type.COUNTER,
        "Watches that were begun again; a few each hour are normal, because the server ends every watch after some minutes.",
        ("resource",),
    ),
    Family("trio_sched_watch_lists_total", Type.COUNTER, "How often all objects were listed.", ("resource",)),
    Family("trio_sched_watch_connected", Type.GAUGE, "1 while the watch is open.", ("resource",)),
    Family(
        "trio_sched_watch_silence_seconds",
        Type.GAUGE,
        "For how long nothing has arrived; ten minutes are normal for a kind without changes, if the API server sends no bookmarks.",
        ("resource",),
    ),
    Family(
        "trio_sched_requests_in_flight",
        Type.GAUGE,
        "Requests that have no response yet; watches do not count once they are open.",
        ("client",),
    ),
    Family("trio_sched_events_unsent", Type.GAUGE, "Recorded events that the API server does not have yet."),
    Family("trio_sched_events_dropped_total", Type.COUNTER, "Events that were not sent because too many waited."),
    Family(
        "trio_sched_log_lines_dropped_total",
        Type.COUNTER,
        "Lines of the log that were not written because nobody read it, or the disk was full or slow.",
    ),
    Family(
        "trio_sched_cache_drift_total",
        Type.COUNTER,
        "Objects about which the cache was wrong, by what was wrong; rejectedChange is a change that did not fit the cache.",
        ("difference",),
    ),
    Family("trio_sched_cache_checks_total", Type.COUNTER, "Comparisons of the cache with the API server."),
    Family(
        "trio_sched_configuration_reloads_total",
        Type.COUNTER,
        "How often a changed configuration was put in force (success), or could not be (error).",
        ("result",),
    ),
    Family(
        "trio_sched_configuration_last_reload_successful",
        Type.GAUGE,
        "1 while the configuration file is in force as it was read last.",
    ),
    Family(
        "trio_sched_recording",
        Type.GAUGE,
        "1 while decisions are recorded; 0 also once that has ended, which the log says.",
    ),
    Family(
        "trio_sched_recording_left_out_total",
        Type.COUNTER,
        "What was not recorded because the disk was too slow: changes and decisions.",
    ),
    Family(
        "trio_sched_pods_flushed_total",
        Type.COUNTER,
        "Pods that were tried again because they had waited for an event too long.",
    ),
    Family(
        "trio_sched_shadow_decisions_total",
        Type.COUNTER,
        "Decisions of another scheduler, by how they compare with those of this shadow of it.",
        ("class", "decision", "profile"),
    ),
    Family(
        "trio_sched_shard_ready",
        Type.GAUGE,
        "Shards that this replica holds: 1 if it decides for them, 0 while it sees what was bound and fences.",
        ("shard",),
    ),
    Family(
        "trio_sched_shard_pending_pods",
        Type.GAUGE,
        "Pods that this replica has in its queue, by the shard that decides on them.",
        ("shard",),
    ),
    Family(
        "trio_sched_shard_proposals_total",
        Type.COUNTER,
        "Pods that this replica nominated to nodes of others: bound, refused, without an answer in time (timeout), or "
        "first given a place that others are evicted from (reserved).",
        ("result",),
    ),
    Family(
        "trio_sched_shard_refusals_total",
        Type.COUNTER,
        "Pods of other replicas that were nominated to a node of this one and did not fit there.",
    ),
    Family(
        "trio_sched_shard_fenced_pods_total",
        Type.COUNTER,
        "Pods that were given another version, so that no earlier decision about them can take effect.",
    ),
)
