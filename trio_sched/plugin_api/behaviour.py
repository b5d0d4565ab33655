"""What kube-scheduler does differently from one minor version to the next, where no feature gate says so.

A version that changes something is an entry in `_BEHAVIOURS`; plugins and engine ask once, when they are made.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve, field, frozen

from trio_sched.plugin_api.cluster_events import Resource
from trio_sched.plugin_api.handle import Handle


def _difference(area: str, before: str, since: str) -> Any:
    """A field; the reference page has *area*, what it concerns, and what there is *before* it and *since* it."""
    return field(metadata={"area": area, "before": before, "since": since})


@frozen(kw_only=True)
class Behaviour:
    """How the emulated version behaves."""

    image_volumes_raise_threshold: bool = _difference(
        "ImageLocality", "the highest score needs 1000 MiB per container", "and per image volume, too"
    )
    """ImageLocality: whether image volumes count like containers for the size that scores highest."""
    any_anti_affinity_term_wakes: bool = _difference(
        "InterPodAffinity",
        "a pod that goes or changes its labels wakes pods of which it matches all terms of required anti-affinity",
        "it wakes those of which it matches at least one",
    )
    """InterPodAffinity: whether a pod that went helps if one term of several matches it."""
    success_of_preemption_is_told: bool = _difference(
        "DefaultPreemption",
        "event and condition of a pod that preempts do not mention it",
        "they end with `preemption: found a potential placement for pod on node N, preempting K victims`",
    )
    """DefaultPreemption: whether the message of the pod names the node and counts the victims."""
    bind_retry_seconds: tuple[float, ...] = _difference(
        "Binding",
        "a bind that fails fails the attempt",
        "after 500, 503 or a refused connection it is sent again after 10, 50 and 250 ms",
    )
    """The waits before a bind is sent again that the API server could not handle, without jitter."""
    batches_are_rescored: bool = _difference(
        "Batches of equal pods",
        "kube-scheduler scores all nodes again when the node chosen last has room for another pod",
        "it scores that one again; here all nodes that changed are, in both, and metrics tell it",
    )
    """Whether metrics tell how nodes are scored again, and which hook failed when cached results are dropped."""
    gated_pods_keep_nominations: bool = _difference(
        "Queue",
        "the nomination of a pod that is gated counts once it is not gated any more",
        "the place on the nominated node is kept for it meanwhile",
    )
    """Whether a pod that pre_enqueue rejects is nominated to the node that its status names."""
    mount_options_need_feature: bool = _difference(
        "NodeDeclaredFeatures",
        "`bindMountOptions` of volume mounts do not matter",
        "a pod with such needs a node that declares the feature VolumeBindMountOptions",
    )
    """NodeDeclaredFeatures: whether options of bind mounts require a feature of the node."""
    failed_selectors_name_device: bool = _difference(
        "DynamicResources",
        "`class C: selector #0: CEL runtime error: …`",
        "`class C: selector #0 on device D: CEL runtime error: …`, with a hint at missing keys",
    )
    """DynamicResources: whether runtime errors of CEL name the device and how to guard against a missing key."""
    list_attributes_are_evaluated: bool = _difference(
        "DynamicResources",
        "attributes that are lists are an error without the gate DRAListTypeAttributes",
        "selectors read them with and without it",
    )
    """DynamicResources: whether selectors read attributes that are lists whatever the gate says."""
    configuration_is_merged: bool = _difference(
        "DynamicResources",
        "an allocation lists the configuration of a claim once per request that it is for, with the requests",
        "it lists it once, without requests if it is for all of them",
    )
    """DynamicResources: whether ``config`` of an allocation has no duplicates, and no requests if it is for all."""
    device_search_undoes_everything: bool = _difference(
        "DynamicResources",
        "a device that is rejected for a taint or a constraint keeps the counters it would consume, and pools of two "
        "drivers with one name share counters",
        "what a rejected device took is given back, and the pool of each driver has its own counters",
    )
    """DynamicResources: whether nothing stays taken of devices that a search rejects."""
    every_device_is_distinct: bool = _difference(
        "DynamicResources",
        "`distinctAttribute` compares a device with the latest one of each request",
        "it compares it with all others",
    )
    """DynamicResources: whether ``distinctAttribute`` holds among all devices of a request."""
    all_devices_need_room: bool = _difference(
        "DynamicResources",
        "`allocationMode: All` leaves out devices of whose capacity too little is left",
        "it fails on a node that has one",
    )
    """DynamicResources: whether a device without room fails requests for all devices."""
    capacities_are_checked: bool = _difference(
        "DynamicResources",
        "consumed capacity that was rounded to a step is written in binary units",
        "it is written as the step is; negative capacity, and what cannot be rounded in 64 bits, ends the attempt",
    )
    """DynamicResources: see `plugins_builtin.dynamic_resources.device_capacity.CapacityRules`."""
    counters_belong_to_nodes: bool = _difference(
        "DynamicResources",
        "every node has the pools of all slices with shared counters",
        "slices with shared counters that name a node or select nodes are those of these nodes only",
    )
    """DynamicResources: whether slices with counters are for the nodes that they name."""
    devices_have_overhead: bool = _difference(
        "DynamicResources, gate DRANodeAllocatableResources",
        "`nodeAllocatableResourceMappings` of devices count while a claim is being allocated; pods on one node do not "
        "share a claim with such",
        "`nodeAllocatableResources` count for each pod, as `mapping` and `overhead`; pods do not share a claim with "
        "`mapping`",
    )
    """DynamicResources: which fields of devices say what these take of their node."""
    resize_of_whole_pod: bool = _difference(
        "Pods that are being resized",
        "hold the sum of what each container wants, has or is allocated at most",
        "hold the highest of the sums of what all containers want, have and are allocated; init containers, too",
    )
    """Requests: see `trio_sched.objects.pod_requests.ResourceOptions`."""
    groups_ask_placement_feasible: bool = _difference(
        "Pod groups",
        "a group is tried with all of its pods, and is scheduled if permit lets one of them pass",
        "`placement_feasible` is called before the first pod and after each; an attempt that cannot succeed ends early "
        "with `minCount (N) cannot be satisfied: S scheduled, R remaining`",
    )
    """Whether placement_feasible, and not permit, says if enough pods of a group fit."""
    groups_are_uniform: bool = _difference(
        "Pod groups",
        "the pods of one attempt need the same schedulerName",
        "all pods of a group, scheduled ones too, need the same schedulerName and preemption policy, and the priority "
        "of the group; if not, their attempts fail and the reason of the group's condition is `SchedulerError`",
    )
    """Whether a group is tried only if its pods have its priority, and one preemption policy."""
    groups_preempt_as_one: bool = _difference(
        "Pod groups",
        "each pod that fits nowhere preempts, or with WorkloadAwarePreemption the group, unless it has a topology key",
        "`podGroupPostFilter`, a point of its own in the configuration, is called once for the group, also with a "
        "topology key, and `postFilter` for none of its pods; the condition ends with `pod group preemption: found a "
        "placement for podgroup, preempting K victims`",
    )
    """Whether post filters are called for a group, at an extension point of their own, and not for its pods."""
    groups_are_victims_of_pods: bool = _difference(
        "DefaultPreemption, gate GenericWorkload",
        "a pod that preempts evicts the pods of a group one by one, each by its own priority",
        "the pods of a group with the `disruptionMode` `all` are one victim, on whatever nodes they are; victims in a "
        "group have its priority, also when a group preempts, and are more important than others of that priority",
    )
    """DefaultPreemption: whether the `disruptionMode` and the priority of groups count for pods that preempt."""
    groups_are_entities: bool = _difference(
        "Queue",
        "the pods of a group are queued one by one, and back off for at most `podMaxBackoffSeconds`",
        "a group has one place, by its own priority and time, is gated as a whole, and backs off for at most "
        "`podMaxBackoffSeconds` times the square root of the number of its pods; when it is scheduled, pods that are "
        "left are tried at once",
    )
    """Whether the pods of a group are queued as one entity."""
    smaller_gangs_are_tried: bool = _difference(
        "GangScheduling",
        "the API server does not let `minCount` of a gang change",
        "its pods are queued again when `minCount` is lowered",
    )
    """Whether a change of a pod group can make room for its pods."""
    gated_pods_are_flushed: bool = _difference(
        "Queue",
        "a gated pod waits for an event of the plugin that gates it, however long",
        "after five minutes that plugin is asked again, every 30 seconds",
    )
    """Whether gated pods are moved like others when they have waited for an event too long."""
    deleted_claims_free_devices: bool = _difference(
        "DynamicResources",
        "a claim that is deleted wakes no pod",
        "it wakes those that wait for devices if it still had some: the watch may have missed that it gave them back",
    )
    """DynamicResources: whether the deletion of an allocated claim is worth an attempt."""
    deleted_pods_are_uncounted: bool = _difference(
        "`scheduler_unschedulable_pods`",
        "goes on counting a pod that is deleted before it is tried again, if it was on its way",
        "does not",
    )
    """Whether a pod that is deleted from the active or the backoff queue leaves the gauge of unschedulable pods."""
    pod_events_are_split: bool = _difference(
        "Events of the queue",
        "a new pod is `UnschedulablePodAdd` in metrics and logs, its change `UnschedulablePodUpdate…`",
        "`UnscheduledPodAdd`, `TargetPodUpdate…`; more requests are `UpdatePodScaleUp`, a node's other preemption "
        "policy is `UpdateNodePreemptionPolicy`; TaintToleration, NodeUnschedulable, NodeDeclaredFeatures and "
        "DynamicResources are asked at changes of the waiting pod, and not of others, whether it may fit now",
    )
    """Whether events tell a pod's own changes from other pods."""

    @classmethod
    def of(cls, handle: Handle) -> Behaviour:
        """That of the version that the scheduler of *handle* emulates."""
        return behaviour_at(handle.emulated_version)

    @property
    def own_pod(self) -> str:
        """The resource in registrations of plugins to which only changes of the waiting pod itself matter."""
        return Resource.TARGET_POD if self.pod_events_are_split else Resource.POD


_1_36: Final = Behaviour(
    image_volumes_raise_threshold=False,
    any_anti_affinity_term_wakes=False,
    success_of_preemption_is_told=False,
    bind_retry_seconds=(),
    batches_are_rescored=False,
    mount_options_need_feature=False,
    gated_pods_keep_nominations=False,
    failed_selectors_name_device=False,
    list_attributes_are_evaluated=False,
    configuration_is_merged=False,
    device_search_undoes_everything=False,
    every_device_is_distinct=False,
    all_devices_need_room=False,
    capacities_are_checked=False,
    counters_belong_to_nodes=False,
    devices_have_overhead=False,
    resize_of_whole_pod=False,
    groups_ask_placement_feasible=False,
    groups_are_uniform=False,
    groups_preempt_as_one=False,
    groups_are_victims_of_pods=False,
    groups_are_entities=False,
    smaller_gangs_are_tried=False,
    gated_pods_are_flushed=False,
    deleted_claims_free_devices=False,
    deleted_pods_are_uncounted=False,
    pod_events_are_split=False,
)
_1_37: Final = evolve(
    _1_36,
    image_volumes_raise_threshold=True,
    any_anti_affinity_term_wakes=True,
    success_of_preemption_is_told=True,
    bind_retry_seconds=(0.01, 0.05, 0.25),
    batches_are_rescored=True,
    mount_options_need_feature=True,
    gated_pods_keep_nominations=True,
    failed_selectors_name_device=True,
    list_attributes_are_evaluated=True,
    configuration_is_merged=True,
    device_search_undoes_everything=True,
    every_device_is_distinct=True,
    all_devices_need_room=True,
    capacities_are_checked=True,
    counters_belong_to_nodes=True,
    devices_have_overhead=True,
    resize_of_whole_pod=True,
    groups_ask_placement_feasible=True,
    groups_are_uniform=True,
    groups_preempt_as_one=True,
    groups_are_victims_of_pods=True,
    groups_are_entities=True,
    smaller_gangs_are_tried=True,
    gated_pods_are_flushed=True,
    deleted_claims_free_devices=True,
    deleted_pods_are_uncounted=True,
    pod_events_are_split=True,
)
_BEHAVIOURS: Final = {(1, 36): _1_36, (1, 37): _1_37}
"""By the first minor version that behaves so, oldest first; what is older than all of them behaves like the first."""


def behaviour_at(version: tuple[int, int]) -> Behaviour:
    """That of the minor version *version*, ``(1, 37)``."""
    found = _1_36
    for since, behaviour in _BEHAVIOURS.items():
        if since <= version:
            found = behaviour
    return found
