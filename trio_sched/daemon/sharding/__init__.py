"""Several schedulers share the work: leases of shards, binds with versions, nominations to nodes of others.

Imported only where the configuration has ``sharding``.
"""
