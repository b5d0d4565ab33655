"""NodeDeclaredFeatures: filters out nodes that do not declare the kubelet features that the pod requires."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import ClassVar, Final

import numpy as np

from trio_sched.plugin_api import (
    SKIP,
    Action,
    BoolArray,
    Change,
    Clause,
    Container,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Node,
    NodeColumns,
    Pod,
    Resource,
    Status,
    Verdicts,
    edit_pod,
    hookimpl,
    on,
    per_distinct_value,
    replace_fields,
    unresolvable,
)
from trio_sched.plugin_api.behaviour import Behaviour

REASON = "node(s) didn't match Pod's required features"
_RESTART_ALL = "RestartAllContainersOnContainerExits"
_HOST_NETWORK_USERS = "UserNamespacesHostNetworkSupport"
_MOUNT_OPTIONS = "VolumeBindMountOptions"


class NodeDeclaredFeatures:
    """Filters out nodes whose ``status.declaredFeatures`` lack a feature that the pod requires."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        behaviour = Behaviour.of(handle)
        self._mount_options_need_feature = behaviour.mount_options_need_feature
        self._own_pod = behaviour.own_pod

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip if the pod requires no feature."""
        return None if self._required_features(pod) else SKIP

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes that do not declare all required features fail."""
        required = self._required_features(pod)
        passes = per_distinct_value(nodes.feature_sets, nodes.feature_lists, required.issubset, np.bool_)
        return Verdicts.where(passes, unresolvable(REASON))

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each feature that nodes do not declare."""
        for feature in sorted(self._required_features(pod)):
            has = per_distinct_value(nodes.feature_sets, nodes.feature_lists, frozenset({feature}).issubset, np.bool_)
            user, without = _USERS[feature]
            yield Clause(
                reason="FeatureNotDeclared",
                title=f"node feature {feature}",
                fails=~has,
                cause=f"it needs {feature} for {user}; {np.count_nonzero(~has)} node(s) do not declare that feature",
                changes=partial(_without_feature, pod, user, without),
            )

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The required features."""
        return self._required_features(pod)

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """The declared features of a node or the required features of the pod change."""
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _declared_features_changed),
            on(self._own_pod, Action.UPDATE, self._required_features_changed),
        ]

    def _required_features(self, pod: Pod) -> frozenset[str]:
        spec, required = pod.spec, set()
        for container in (*(spec.init_containers or ()), *(spec.containers or ())):
            for rule in container.restart_policy_rules or ():
                if rule.action == "RestartAllContainers":
                    required.add(_RESTART_ALL)
        if spec.host_network and spec.host_users is False:
            required.add(_HOST_NETWORK_USERS)
        if self._mount_options_need_feature and _has_mount_options(pod):
            required.add(_MOUNT_OPTIONS)
        return frozenset(required)

    def _required_features_changed(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        changed = new.uid == pod.uid and self._required_features(old) != self._required_features(new)
        return Hint.QUEUE if changed else Hint.SKIP


def _without_feature(pod: Pod, user: str, without: Callable[[Pod], Pod], nodes: BoolArray) -> Iterable[Change]:
    """That the pod does not use what needs the feature."""
    return [Change(title=f"no {user}", edits=(edit_pod(pod, without),))]


def _of_containers(pod: Pod, edited: Callable[[Container], Container]) -> Pod:
    spec = pod.spec
    containers, inits = (
        None if every is None else tuple(map(edited, every)) for every in (spec.containers, spec.init_containers)
    )
    return replace_fields(pod, spec=replace_fields(spec, containers=containers, init_containers=inits))


def _without_restart_of_all(pod: Pod) -> Pod:
    def edited(one: Container) -> Container:
        left = tuple(rule for rule in one.restart_policy_rules or () if rule.action != "RestartAllContainers")
        return replace_fields(one, restart_policy_rules=left or None)

    return _of_containers(pod, edited)


def _without_own_users(pod: Pod) -> Pod:
    return replace_fields(pod, spec=replace_fields(pod.spec, host_users=None))


def _without_mount_options(pod: Pod) -> Pod:
    def edited(one: Container) -> Container:
        mounts = one.volume_mounts
        if mounts is None:
            return one
        return replace_fields(
            one, volume_mounts=tuple(replace_fields(mount, bind_mount_options=None) for mount in mounts)
        )

    return _of_containers(pod, edited)


_USERS: Final[Mapping[str, tuple[str, Callable[[Pod], Pod]]]] = {
    _RESTART_ALL: ("restart rule RestartAllContainers", _without_restart_of_all),
    _HOST_NETWORK_USERS: ("hostUsers: false with hostNetwork", _without_own_users),
    _MOUNT_OPTIONS: ("bindMountOptions of its volume mounts", _without_mount_options),
}
"""Feature → what of a pod needs it, and how the pod would be without."""


def _has_mount_options(pod: Pod) -> bool:
    spec = pod.spec
    every = (*(spec.containers or ()), *(spec.init_containers or ()), *(spec.ephemeral_containers or ()))
    return any(mount.bind_mount_options for container in every for mount in container.volume_mounts or ())


def _declared_features_changed(pod: Pod, old: Node | None, new: Node) -> Hint:
    if old is None or (old.status.declared_features or ()) != (new.status.declared_features or ()):
        return Hint.QUEUE
    return Hint.SKIP
