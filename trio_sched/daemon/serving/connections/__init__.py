"""Connections before and after their client is known: protocols, and what strangers can use up."""
