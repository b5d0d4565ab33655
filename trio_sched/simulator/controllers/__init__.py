"""Simulated controllers: what changes objects in a cluster besides users, the scheduler and the kubelets.

They act inside the server: injected faults do not affect them.
"""
