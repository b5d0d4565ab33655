"""Calls of extenders: webhooks that filter, score, preempt and bind."""
