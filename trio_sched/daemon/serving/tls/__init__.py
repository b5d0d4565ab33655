"""Certificates of the HTTPS endpoints, read again when their files change, and TLS on a trio stream."""
