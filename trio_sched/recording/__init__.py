"""The format of recordings: what a scheduler was told and what it decided, in segments of compressed records.

No trio and no scheduling: `trio_sched.daemon.recording` writes recordings, `trio_sched.replaying` replays them.
"""
