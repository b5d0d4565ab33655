"""Kubelets: bound pods start, run, are resized and end."""
