"""Tokens, from files and from exec plugins."""
