"""Calls of plugins' hooks, and everything about a hook that fails.

In: bound hooks and their arguments. Out: checked return values, or a `HookFailed` with kube-scheduler's words.
`plugin_calls` is the only caller of hooks; durations are given to `measurements`.
"""
