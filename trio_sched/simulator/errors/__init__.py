"""Answers that refuse: statuses as kube-apiserver words them, and what of a cluster is not simulated."""
