"""Rules of several schedulers that share the work: which of them a node and a pod belong to."""
