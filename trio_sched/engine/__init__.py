"""Decides where pods go.

Plain functions and state machines over a snapshot: same input, same result. Time arrives as an argument (``now``), the
cluster as columns, the plugins as objects, chance as a generator. If a module needs to open, send, sleep or log, it
belongs in ``daemon`` or ``kube_client``.
"""
