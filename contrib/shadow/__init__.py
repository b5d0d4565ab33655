"""Runs a shadow beside kube-scheduler, or beside trio-sched, on a real control plane: ``python -m contrib.shadow``."""
