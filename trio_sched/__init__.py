"""trio-sched: a Kubernetes scheduler whose plugins are pip packages.

The packages, lowest layer first; ``lint-imports`` enforces that each imports only from lower ones (``engine``,
``kube_client`` and ``simulator`` are one layer):

* ``errors``      the base class of errors
* ``go``          what Go prints and reads
* ``documents``   YAML and JSON from outside, read with bounds
* ``objects``     Kubernetes objects, decoded straight from the wire
* ``cel``         the language in which devices are selected: parser, type checker, limits
* ``snapshot``    the cluster at one instant, as numpy columns
* ``plugin_api``  what plugins import: hooks, Status, CycleState, Handle
* ``config``      KubeSchedulerConfiguration: read, completed, validated
* ``engine``      decides: queue, cache, cycle, profiles; no I/O, no clock of its own
* ``kube_client`` talks to an API server
* ``simulator``   an API server in memory, with kubelets and controllers
* ``daemon``      waits: the nursery tree, watches, binding, leader election
* ``simulation``  runs clusters from files on simulated time, and reports
* ``testing``     toolkit for tests of plugins
* ``cli``         the commands
"""

__version__ = "0.2.0"

KUBERNETES_VERSION = "1.36.2"
"""The version of kube-scheduler whose behaviour is implemented."""
