"""The live page: ``/ui``."""
