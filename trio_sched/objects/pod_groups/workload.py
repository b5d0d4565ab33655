"""Services and controllers: the selectors of their pods, and how many of these there are to be and are."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.selector import LabelSelector


class MapSelectorSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Service or a ReplicationController: the labels that pods must have, all of them."""

    selector: dict[str, str] | None = None


class LabelSelectorSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a ReplicaSet or a StatefulSet."""

    selector: LabelSelector | None = None


class Service(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` Service."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = field(default_factory=MapSelectorSpec)


class ReplicationController(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` ReplicationController."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = field(default_factory=MapSelectorSpec)


class ReplicaSet(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ``apps/v1`` ReplicaSet."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = field(default_factory=LabelSelectorSpec)


class StatefulSet(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ``apps/v1`` StatefulSet."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = field(default_factory=LabelSelectorSpec)


class DeploymentSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Deployment; *replicas* is the wanted number of pods."""

    replicas: int = 1
    selector: LabelSelector | None = None
    paused: bool = False


class DeploymentStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a Deployment: numbers of pods."""

    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class Deployment(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ``apps/v1`` Deployment."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeploymentSpec = field(default_factory=DeploymentSpec)
    status: DeploymentStatus = field(default_factory=DeploymentStatus)


class DaemonSetStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a DaemonSet: numbers of nodes, those that are to run its pod and those on which one runs."""

    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_ready: int = 0


class DaemonSet(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ``apps/v1`` DaemonSet."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = field(default_factory=LabelSelectorSpec)
    status: DaemonSetStatus = field(default_factory=DaemonSetStatus)


class JobSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Job; without *completions* it is done when one of its pods is."""

    parallelism: int = 1
    completions: int | None = None
    suspend: bool = False
    selector: LabelSelector | None = None


class JobStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a Job: numbers of pods; *completion_time* is empty until it has succeeded."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    completion_time: str = ""


class Job(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``batch/v1`` Job."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)
