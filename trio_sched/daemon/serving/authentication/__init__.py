"""Who asks, and whether they may: client certificates, tokens, front proxies, reviews by the API server."""
