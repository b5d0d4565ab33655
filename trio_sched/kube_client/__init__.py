"""Speaks to an API server, and knows no policy.

``connection`` opens a client; ``kubeconfig`` says where to and as whom. ``verbs``, ``binding``, ``pods``, ``events``
and ``leases`` are what can be asked; ``watch`` keeps up with one kind of object. Below them lie the layers of a
request: ``channel`` (bytes over TCP and TLS), ``dialer`` (reaching the server, proxies included), ``http1`` (one
connection), ``pool`` (all of them), ``transport`` (the pool as an httpx transport), ``credentials``, ``rate_limit``
and ``retry``.

What to schedule, when to try again after a refused bind, who leads: none of that belongs in here.
"""
