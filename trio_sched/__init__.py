"""trio-sched: a Kubernetes scheduler whose plugins are pip packages.

The rooms, from the ground up; a room imports only from floors below its own:

* ``objects``     Kubernetes things, decoded straight from the wire
* ``snapshot``    the cluster at one instant, as numpy columns
* ``plugin_api``  the contract with plugins: hooks, Status, CycleState, Handle
* ``config``      KubeSchedulerConfiguration: read, completed, validated
* ``engine``      decides: queue, cache, cycle, profiles; no I/O, no clock of its own
* ``kube_client`` talks to an API server
* ``simulator``   pretends to be an API server and its kubelets
* ``daemon``      waits: the nursery tree, watches, binding, leader election
* ``testing``     toolkit for plugin authors, and for us
* ``cli``         the commands; wires the rooms together
"""

__version__ = "0.1.0"
