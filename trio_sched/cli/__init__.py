"""The command line: starts the daemon, or runs one of the commands.

`main` chooses: flags alone, which are kube-scheduler's, start the daemon (`run`); a command's name runs that command,
with a file per command (`simulate`, `convert_config`, `plugins`). Between the flags and a start are `go_flags` (parsing
as Go does it), `flag_table` and `flags`, `configuration_text` (files of former versions converted) and `prepare` (all
checks in kube-scheduler's order). This package wires the others together; no other imports it.
"""
