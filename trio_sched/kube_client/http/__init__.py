"""HTTP/1.1 on trio: sockets, proxies, TLS, a pool of connections, the observation of requests."""
