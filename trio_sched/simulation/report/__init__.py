"""An outcome as text, JSON and page."""
