"""The command line: starts the daemon, or runs one of the commands.

`main` chooses: flags alone, which are kube-scheduler's, start the daemon (`run`); a command's name runs that command,
with a file per command (`commands` lists them), which is imported only then. Around them are `standard_streams` and
`interruption`: what becomes of output that cannot be written, and of signals that no daemon handles. Between the flags
and a start are `go_flags` (parsing as Go does it), `flag_table` and `flags`, `configuration_text` (files of former
versions converted) and `prepare` (all checks in kube-scheduler's order). This package wires the others together; no
other imports it.
"""
