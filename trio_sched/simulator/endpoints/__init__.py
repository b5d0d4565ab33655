"""The API server: from a request to an answer."""
