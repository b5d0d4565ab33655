"""How pods and nodes are watched: with their whole JSON where extenders are sent it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from attrs import evolve

from trio_sched.config.schema import Extender as ExtenderConfig
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.raw_object import keep_raw_node, keep_raw_pod


def node_kind(configs: Iterable[ExtenderConfig]) -> Kind[Node]:
    """How to watch nodes: with their whole JSON if it is sent to some extender."""
    for config in configs:
        if not config.node_cache_capable and (config.filter_verb or config.prioritize_verb):
            return evolve(NODE_KIND, keep_raw=keep_raw_node)
    return NODE_KIND


def pod_kind(configs: Iterable[ExtenderConfig]) -> Kind[Pod]:
    """How to watch pods: with their whole JSON as long as they have no node, and all if victims are sent, too."""
    asked = [config for config in configs if config.filter_verb or config.prioritize_verb or config.preempt_verb]
    if not asked:
        return POD_KIND
    all_pods = any(config.preempt_verb and not config.node_cache_capable for config in asked)
    return evolve(POD_KIND, keep_raw=partial(_keep_if_sent, all_pods))


def _keep_if_sent(all_pods: bool, pod: Pod, raw: bytes) -> Pod:
    if all_pods or not pod.node_name:
        return keep_raw_pod(pod, raw)
    return pod
