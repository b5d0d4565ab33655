"""The HTTPS endpoints: health, metrics, configuration, profiles and what the scheduler has in memory.

A request goes through `application` (ASGI) to authentication, authorization and the routes. This package is imported
only where something is served: it needs Hypercorn and pyOpenSSL, which take long to import.
"""
