"""Limits of the daemon: how much at once, how long, how often. What the configuration file says comes from there."""

from __future__ import annotations

from typing import Final

# --- the scheduling loop
SLICE_SECONDS: Final = 0.005
"""The loop goes on for so long before other tasks run: a checkpoint for every pod would cost too much."""
SLICE_PODS: Final = 16
"""Pods that the loop schedules before other tasks run, if that takes less time."""
LONG_SECONDS: Final = 0.1
"""A decision that takes so long is followed by a pause for other tasks, see `trio_sched.daemon.hooks.yielding`."""

# --- binds
MAX_PARALLEL_BINDS: Final = 32
MAX_BIND_LOOK_UP_SECONDS: Final = 60.0
"""How long it is asked whether a pod was bound whose bind got no response; then its attempt has failed."""
MAX_BIND_LOOK_UP_PAUSE_SECONDS: Final = 5.0
"""The longest pause between two look-ups of a pod whose bind got no response; its jitter at most doubles it."""

# --- status of pods
MAX_PARALLEL_STATUS_PATCHES: Final = 8
STATUS_RETRY_SECONDS: Final = (0.01, 0.05, 0.25)
"""The pauses between the tries of a patch. Source: ``retry.DefaultBackoff`` of client-go.

Without a connection `PodStatusWriter` goes on trying, without a limit, to write why pods are pending.
"""
STATUS_RETRY_JITTER: Final = 0.1
"""A pause is up to this share longer."""

MAX_CONDITION_MESSAGE_BYTES: Final = 32 * 1024
"""What metav1.Condition allows. Extenders and plugins can say megabytes; an API server refuses a pod that large."""

# --- preemption
MAX_PARALLEL_PREEMPTORS: Final = 64
"""Twice the connections of a client: a preemptor that pauses between two tries leaves none of them unused."""

# --- plugins
MAX_PARALLEL_PLUGIN_JOBS: Final = 32
"""What a plugin does in the background, in all profiles."""
MAX_WAITING_PLUGIN_JOBS: Final = 100_000
MAX_PLUGIN_METRICS: Final = 1000
"""Metrics of all plugins together."""
MAX_PLUGIN_SERIES: Final = 1000
"""Sets of label values of one of these."""
MAX_PLUGIN_LABEL_CHARACTERS: Final = 1000
"""The longest value of a label."""
MAX_HTTP_BODY_BYTES: Final = 16 * 1024 * 1024
"""The largest response to a plugin, decompressed."""
MAX_HTTP_SECONDS: Final = 10.0**9
MAX_HTTP_REDIRECTS: Final = 10
MAX_PARALLEL_HTTP: Final = 32
"""Requests of plugins at a time; each has a thread."""
HTTP_CLOSE_SECONDS: Final = 1.0
"""How long a stop waits for connections of plugins to be closed in order."""
MAX_HTTP_CLIENTS: Final = 16
"""With different files of certificates; each has connections of its own."""
RESTART_TASK_SECONDS: Final = 60.0
"""How long after its failure the background task of a plugin is started again that does not fail closed."""
MAX_PLUGIN_RETRY_SECONDS: Final = 10.0**9
"""Longer times are cut to this, so that they can be added to a time."""

# --- events; source: the event broadcaster of Kubernetes, except for the limits of what waits and of series
MAX_UNSENT_EVENTS: Final = 100_000
"""Events that wait to be sent; further ones are dropped, and the log says so."""
MAX_UNSENT_PLUGIN_EVENTS: Final = 20_000
"""With so many that wait, those of plugins are dropped: there must be room for those of the scheduler."""
MAX_UNSENT_EVENT_BYTES: Final = 64 * 1024 * 1024
"""What those that wait may take: as many as above only if they are short."""
MAX_UNSENT_PLUGIN_EVENT_BYTES: Final = 32 * 1024 * 1024
MAX_EVENT_TEMPLATES: Final = 1000
"""Combinations of profile, type, reason and action for which the JSON is prepared."""
MAX_PARALLEL_EVENTS: Final = 8
EVENT_TRIES: Final = 12
EVENT_RETRY_SECONDS: Final = 10.0
EVENT_RETRY_JITTER: Final = 0.25
"""A pause is up to this share longer."""
MAX_EVENT_NOTE_BYTES: Final = 1024
MAX_NAME_LENGTH: Final = 253
"""The longest name of an object, by the rules of the API server."""
MAX_EVENT_SERIES: Final = 10_000
"""Beyond it the series that has seen no repetition for the longest time ends early."""
MAX_EVENT_SERIES_BYTES: Final = 32 * 1024 * 1024
"""The most that all of them take, counted as they are kept in memory."""
SERIES_SWEEP_SECONDS: Final = 60.0
"""How often it is looked which series are over."""
SERIES_QUIET_SECONDS: Final = 360.0
"""A series without a repetition for this long is over."""
SERIES_REFRESH_SECONDS: Final = 1800.0
"""The count of a series that goes on is sent this often."""

# --- pod groups
GANG_CHECK_SECONDS: Final = 0.5
"""The shortest pause between two looks at gangs that are incomplete or hold places, while no pod is to be scheduled."""

# --- the queue
FLUSH_UNSCHEDULABLE_SECONDS: Final = 30.0
"""How often the queue is searched for pods that have waited for an event too long."""
MIN_TIMER_SECONDS: Final = 0.05
"""The shortest pause of the queue's timers."""

# --- comparing the cache with the API server
CACHE_CHECK_SECONDS: Final = 600.0
"""The pause between two comparisons."""
CACHE_CHECK_SETTLE_SECONDS: Final = 5.0
"""How long a watch may take to show what a list has shown."""
MAX_CONFIRMED_BY_GET: Final = 20
"""Objects that are read one by one to confirm a difference; where more differ, these are a sample."""
MAX_LOGGED_DRIFT: Final = 20
"""Objects that the log names for each difference."""

# --- reloading the configuration
RELOAD_POLL_SECONDS: Final = 5.0
"""How often it is looked whether the configuration file has changed."""
RELOAD_LIST_SECONDS: Final = 30.0
"""How long it may take to list what the plugins of a new configuration read."""
RELOAD_TRIAL_SECONDS: Final = 1.0
"""A background task of a new plugin that fails within this time keeps the former configuration in force."""

# --- extenders
SLOW_EXTENDER_SECONDS: Final = 1.0
"""A call that takes longer is logged."""
EXTENDER_LOG_INTERVAL_SECONDS: Final = 10.0
"""An extender is logged at most this often; what is not logged is counted."""

# --- becoming the leader, and the end
WATCH_RECONNECT_SECONDS: Final = 30.0
"""A new leader waits this long for its watches; after that it schedules with the cache it has."""
WATCH_RETRY_SECONDS: Final = 1.0
"""The longest pause between two of its tries to connect one."""
WATCH_CATCH_UP_SECONDS: Final = 1.0
"""How long to wait after a watch was opened: the changes that were missed arrive right then."""
SHUTDOWN_GRACE_SECONDS: Final = 10.0
"""How long a stop waits for binds that are under way."""
EVENT_FLUSH_SECONDS: Final = 3.0
"""How long a stop waits for events that are not sent yet, once the lease is released."""
MAX_END_SECONDS: Final = 25.0
"""If a hook that is cancelled still runs so long after the end began, the process ends without it: before a kubelet
kills it (30 s by default), and in any case when the lease is lost, because another instance leads then."""

# --- memory
FREE_MEMORY_SECONDS: Final = 60.0
"""How often it is looked whether memory is not needed any more."""
WORTH_TRIMMING_BYTES: Final = 16 * 1024 * 1024
"""After growth by so much free memory is returned to the system at once, and soon again after so much was returned;"""
MAX_TRIM_PAUSE: Final = 10
"""else only every so many times."""

# --- the log
LOG_BATCH_SECONDS: Final = 0.1
"""A line below a warning waits for others for so long."""
LOG_BATCH_LINES: Final = 64
"""Lines that wait at most."""
MAX_LOG_TEXT_CHARACTERS: Final = 64 * 1024
"""The longest message, and the longest field: extenders and plugins can say megabytes."""

MAX_UNWRITTEN_LOG_BYTES: Final = 4 * 1024 * 1024
"""What waits for whoever reads the log, or for the disk; further lines are dropped and counted."""

# --- hooks that block the event loop; by the wall clock
BLOCKING_SECONDS: Final = 0.1
"""A hook that lets nothing else run for so long is logged."""
STUCK_SECONDS: Final = 5.0
"""A hook that has not returned after so long is logged with its stack, and again whenever twice as much has passed."""
TIME_HOOKS_AT_START_SECONDS: Final = 5.0
"""Hooks are timed one by one for so long after the start,"""
TIME_HOOKS_AFTER_BLOCKING_SECONDS: Final = 300.0
"""and for so long after the event loop was blocked."""
BLOCKING_LOG_INTERVAL_SECONDS: Final = 60.0
"""A hook that blocks is logged at most this often; what is not logged is counted."""

# --- hooks that are awaited
HOOK_SECONDS: Final = 60.0
"""A bind, post_bind or post_filter that is awaited longer is cancelled; what it waits for at the API server or at
extenders through its handle does not count, because that has limits of its own."""
PRE_BIND_SECONDS: Final = 600.0
"""The same for pre_bind, unless its plugin says otherwise: as long as VolumeBinding waits for volumes by default."""
