"""The long-running process: it waits, and never decides.

`supervisor` is the nursery tree on one page. Watches feed the cache and the queue (`delivery`), `schedule_one`
takes pods from the queue and has the engine decide, `binding_cycle` binds through the API server; beside them run the
event recorder, the timers of the queue and the leader election.
"""
