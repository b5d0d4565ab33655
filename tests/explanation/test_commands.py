"""Commands for changes that plugins of others offer: everything that differs is in a command."""

from typing import Any

from attrs import evolve

from trio_sched.explanation.commands import Workload, commands
from trio_sched.explanation.trial import EditedObject
from trio_sched.objects.metadata import ObjectMeta, OwnerReference
from trio_sched.objects.pod_groups.pod_group import (
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from trio_sched.objects.storage.persistent_volume import PersistentVolumeClaim, PersistentVolumeClaimSpec
from trio_sched.plugin_api import Pod, Toleration, replace_fields
from trio_sched.testing import node, pod


def edited(kind: str, old: Any, new: Any) -> EditedObject:
    return EditedObject(kind=kind, name=old.metadata.name, namespace=old.metadata.namespace, old=old, new=new)


def test_a_label_that_a_node_loses_has_a_command() -> None:
    old, new = node("a", labels={"repair": "yes", "disk": "hdd"}), node("a", labels={"disk": "ssd"})
    assert commands([edited("Node", old, new)], pod("p"), None) == [
        "kubectl label node a disk=ssd --overwrite",
        "kubectl label node a repair-",
    ]


def test_labels_of_a_pod_are_changed_in_place() -> None:
    old, new = pod("p", labels={"watts": "500", "app": "x"}), pod("p", labels={"watts": "250"})
    (command,) = commands([edited("Pod", old, new)], old, None)
    assert command == """kubectl patch pod p -n default -p '{"metadata":{"labels":{"watts":"250","app":null}}}'"""


def test_labels_and_a_toleration_are_one_patch() -> None:
    old, new = pod("p"), pod("p", labels={"watts": "250"}, tolerations=["gpu:NoSchedule"])
    (command,) = commands([edited("Pod", old, new)], old, None)
    assert command.startswith("""kubectl patch pod p -n default -p '{"metadata":{"labels":{"watts":"250"}},"spec":""")
    assert '"tolerations":[{"key":"gpu"' in command


def test_a_cron_job_gets_the_change_and_the_job_that_is_there_too() -> None:
    job = OwnerReference(api_version="batch/v1", kind="Job", name="train-1", uid="u", controller=True)
    old = pod("train-1-x", owner=job)
    change = edited("Pod", old, replace_fields(old, spec=replace_fields(old.spec, node_selector={"disk": "ssd"})))
    of_cron_job, of_job = commands([change], old, Workload(kind="CronJob", name="train"))
    template = '{"spec":{"nodeSelector":{"disk":"ssd"}}}'
    patch = f'{{"spec":{{"jobTemplate":{{"spec":{{"template":{template}}}}}}}}}'
    assert of_cron_job == f"kubectl patch cronjob train -n default -p '{patch}'"
    assert of_job.startswith("kubectl get job train-1 -n default -o json | kubectl patch --local -f - -o json -p ")


def test_tolerations_that_every_pod_gets_are_not_written_into_templates() -> None:
    by_all = [("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)]
    given = tuple(
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=seconds)
        for key, seconds in by_all
    )
    own = Toleration(key="gpu", operator="Exists", effect="NoSchedule")
    old, new = tolerating(pod("p"), *given), tolerating(pod("p"), *given, own)
    (of_pod,) = commands([edited("Pod", old, new)], old, None)
    assert "unreachable" in of_pod  # the list is replaced as a whole
    (of_template,) = commands([edited("Pod", old, new)], old, Workload(kind="Deployment", name="web"))
    assert of_template == (
        "kubectl patch deployment web -n default -p "
        """'{"spec":{"template":{"spec":{"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]}}}}'"""
    )


def test_a_claim_of_an_ephemeral_volume_is_made_again_with_its_pod() -> None:
    of_pod = pod("p")
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid=of_pod.uid, controller=True)
    old = PersistentVolumeClaim(
        metadata=ObjectMeta(name="p-scratch", namespace="default", owner_references=(owner,)),
        spec=PersistentVolumeClaimSpec(storage_class_name="fasst"),
    )
    new = replace_fields(old, spec=replace_fields(old.spec, storage_class_name="fast"))
    change = evolve(edited("PersistentVolumeClaim", old, new), recreate=True)
    template = '"ephemeral":{"volumeClaimTemplate":{"spec":{"storageClassName":"fast"}}}'
    patch = f'{{"spec":{{"volumes":[{{"name":"scratch",{template}}}]}}}}'
    assert commands([change], of_pod, None) == [
        f"new=$(kubectl get pod p -n default -o json | kubectl patch --local -f - -o json -p '{patch}')"
        " && kubectl delete pod p -n default"
        " && kubectl delete persistentvolumeclaim p-scratch -n default --ignore-not-found"
        """ && printf '%s\\n' "$new" | kubectl replace --force -f -"""
    ]
    (of_deployment,) = commands([change], of_pod, Workload(kind="Deployment", name="web"))
    assert of_deployment == f"""kubectl patch deployment web -n default -p '{{"spec":{{"template":{patch}}}}}'"""


def test_a_pod_group_is_made_again_though_a_finalizer_keeps_it() -> None:
    spec = PodGroupSpec(scheduling_policy=PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=3)))
    old = PodGroup(metadata=ObjectMeta(name="g", namespace="default"), spec=spec)
    change = evolve(edited("PodGroup", old, old.with_min_count(2)), recreate=True)
    (command,) = commands([change], pod("p"), None)
    assert command.startswith("new=$(kubectl get podgroup g -n default -o json | ")
    assert "kubectl delete podgroup g -n default --wait=false && { kubectl patch podgroup g -n default" in command
    assert command.endswith("|| true; } && printf '%s\\n' \"$new\" | kubectl replace --force -f -")


def tolerating(one: Pod, *tolerations: Toleration) -> Pod:
    return replace_fields(one, spec=replace_fields(one.spec, tolerations=tolerations))
