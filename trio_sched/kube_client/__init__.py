"""The client of an API server; contains no policy.

``connection`` opens a client; ``kubeconfig`` reads the server's address and the credentials. ``verbs``, ``binding``,
``pods``, ``events`` and ``leases`` are the requests; ``watch`` lists and watches one kind of object. Below them are the
layers of a request: ``channel`` (bytes over TCP and TLS), ``dialer`` (opening connections, also through proxies),
``http1`` (one connection), ``pool`` (all of them), ``transport`` (the pool as an httpx transport), ``credentials``,
``rate_limit`` and ``retry``.

What to schedule, when to try again after a refused bind, who is the leader: none of that belongs in here.
"""
