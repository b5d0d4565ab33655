"""The flags of kube-scheduler that change the configuration."""

from attrs import frozen


@frozen(kw_only=True)
class FlagOverrides:
    """The flags that change the configuration; None for those that were not given.

    The leader election flags always apply, the others (deprecated) only if there is no file.
    """

    leader_elect: bool | None = None
    lease_duration_ns: int | None = None
    renew_deadline_ns: int | None = None
    retry_period_ns: int | None = None
    resource_lock: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None

    profiling: bool | None = None
    contention_profiling: bool | None = None
    kubeconfig: str | None = None
    content_type: str | None = None
    qps: float | None = None
    burst: int | None = None
