"""The plugins every cluster expects; proof that the public plugin API is enough."""
