"""The cluster at one instant as numpy columns, and how it follows the cluster change by change.

Knows nodes, pods and numbers; calls no plugin and knows no profile.
"""
