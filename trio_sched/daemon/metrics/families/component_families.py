"""The families of the process: its build, its gates, what it uses; and those of the other two pages."""

from __future__ import annotations

from typing import Final

from trio_sched.daemon.metrics.families.families import BETA, STABLE, Family, Type

COMPONENT_FAMILIES: Final = (
    Family(
        "cardinality_enforcement_unexpected_categorizations_total",
        Type.COUNTER,
        "The count of unexpected categorizations during cardinality enforcement.",
    ),
    Family("disabled_metrics_total", Type.COUNTER, "The count of disabled metrics.", stability=BETA),
    Family(
        "hidden_metrics_total",
        Type.COUNTER,
        "The count of hidden metrics.",
        stability=BETA,
        note="Always 0: no family of this release is hidden.",
    ),
    Family(
        "kubernetes_build_info",
        Type.GAUGE,
        "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
        (
            "build_date",
            "compiler",
            "git_commit",
            "git_tree_state",
            "git_version",
            "go_version",
            "major",
            "minor",
            "platform",
        ),
        stability=BETA,
    ),
    Family(
        "kubernetes_feature_enabled",
        Type.GAUGE,
        "This metric records the data about the stage and enablement of a k8s feature.",
        ("name", "stage"),
        stability=BETA,
    ),
    Family("process_cpu_seconds_total", Type.COUNTER, "Total user and system CPU time spent in seconds.", stability=""),
    Family("process_max_fds", Type.GAUGE, "Maximum number of open file descriptors.", stability=""),
    Family(
        "process_network_receive_bytes_total",
        Type.COUNTER,
        "Number of bytes received by the process over the network.",
        stability="",
    ),
    Family(
        "process_network_transmit_bytes_total",
        Type.COUNTER,
        "Number of bytes sent by the process over the network.",
        stability="",
    ),
    Family("process_open_fds", Type.GAUGE, "Number of open file descriptors.", stability=""),
    Family("process_resident_memory_bytes", Type.GAUGE, "Resident memory size in bytes.", stability=""),
    Family("process_start_time_seconds", Type.GAUGE, "Start time of the process since unix epoch in seconds."),
    Family("process_virtual_memory_bytes", Type.GAUGE, "Virtual memory size in bytes.", stability=""),
    Family(
        "process_virtual_memory_max_bytes",
        Type.GAUGE,
        "Maximum amount of virtual memory available in bytes.",
        stability="",
    ),
    Family(
        "registered_metrics_total",
        Type.COUNTER,
        "The count of registered metrics broken by stability level and deprecation version.",
        ("deprecated_version", "stability_level"),
        stability=BETA,
        note="The families that this process knows.",
    ),
    Family(
        "version_info",
        Type.GAUGE,
        "Provides the compatibility version info of the component. The component label is the name of the component, usually kube, but is relevant for aggregated-apiservers.",
        ("binary", "component", "emulation", "min_compat"),
    ),
    Family(
        "python_info",
        Type.GAUGE,
        "Python platform information",
        ("version", "implementation", "major", "minor", "patchlevel"),
        stability="",
    ),
    Family(
        "python_gc_objects_collected_total", Type.COUNTER, "Objects collected during gc", ("generation",), stability=""
    ),
    Family(
        "python_gc_objects_uncollectable_total",
        Type.COUNTER,
        "Uncollectable objects found during GC",
        ("generation",),
        stability="",
    ),
    Family(
        "python_gc_collections_total",
        Type.COUNTER,
        "Number of times this generation was collected",
        ("generation",),
        stability="",
    ),
)

RESOURCE_FAMILIES: Final = (
    Family(
        "kube_pod_resource_limit",
        Type.GAUGE,
        "Resources limit for workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.",
        ("namespace", "node", "pod", "priority", "resource", "scheduler", "unit"),
        stability=STABLE,
    ),
    Family(
        "kube_pod_resource_request",
        Type.GAUGE,
        "Resources requested by workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the resource if any.",
        ("namespace", "node", "pod", "priority", "resource", "scheduler", "unit"),
        stability=STABLE,
    ),
)

SLI_FAMILIES: Final = (
    Family(
        "kubernetes_healthcheck",
        Type.GAUGE,
        "This metric records the result of a single healthcheck.",
        ("name", "type"),
        stability=STABLE,
    ),
    Family(
        "kubernetes_healthchecks_total",
        Type.COUNTER,
        "This metric records the results of all healthcheck.",
        ("name", "status", "type"),
        stability=STABLE,
    ),
)
