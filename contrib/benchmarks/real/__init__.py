"""trio-sched and kube-scheduler side by side, on a real kube-apiserver with etcd.

For each workload a state with all its nodes and pods is written once. Each scheduler, in turn, gets a copy of it behind
servers of its own, so both find the same backlog, and start-up is part of what is measured: from the start of the
process until the last pod is bound, and its CPU until the last event has arrived.
"""
