"""Compares decisions of another scheduler with those that this one would have made at the state of that moment.

Nothing here waits, and nothing is decided for the cluster: what is altered to look at another view is restored at once.
"""
