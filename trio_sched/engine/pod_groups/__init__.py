"""Attempts to find nodes for all pods of a group, and what a group waits for.

In: the pods of a group and a snapshot. Out: a placement for all of them, or a result per pod.
"""
