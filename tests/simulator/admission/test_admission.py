import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json

DEFAULT = "/api/v1/namespaces/default"
STORAGE = "/apis/storage.k8s.io/v1"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_allocatable_defaults_to_capacity(api: Api) -> None:
    node = await api("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
    assert node["status"]["allocatable"] == {"cpu": "4"}


async def test_no_execute_taints_get_the_time_they_were_added(api: Api) -> None:
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoSchedule"}]
    node = await api("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"taints": taints}})
    assert [taint.get("timeAdded") for taint in node["spec"]["taints"]] == ["2026-01-01T00:00:00Z", None]


async def test_a_claim_without_a_class_gets_the_default_one(api: Api) -> None:
    marks = {"storageclass.kubernetes.io/is-default-class": "true"}
    body = {"metadata": {"name": "fast", "annotations": marks}, "provisioner": "csi.test"}
    made = await api("POST", f"{STORAGE}/storageclasses", body)
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
    claims = f"{DEFAULT}/persistentvolumeclaims"
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = await api("POST", claims, {"metadata": {"name": "a"}, "spec": spec})
    assert made["spec"]["storageClassName"] == "fast"
    none = await api("POST", claims, {"metadata": {"name": "b"}, "spec": {**spec, "storageClassName": ""}})
    assert none["spec"]["storageClassName"] == ""


async def test_the_default_reclaim_policy_of_volumes_is_retain(api: Api) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}
    volume = await api("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


async def test_drivers_require_attachment_by_default(api: Api) -> None:
    driver = await api("POST", f"{STORAGE}/csidrivers", {"metadata": {"name": "d"}, "spec": {"storageCapacity": True}})
    assert (driver["spec"]["attachRequired"], driver["spec"]["storageCapacity"]) == (True, True)


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
async def test_workloads_want_one_replica_and_default_their_template(api: Api, plural: str) -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/default/{plural}"
    made = await api("POST", path, {"metadata": {"name": "w"}, "spec": spec})
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"
    assert made["status"] == {"replicas": 0}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"template": TEMPLATE}, "spec.selector: Required value"),
        ({"selector": {"matchLabels": {}}}, "spec.template.spec.containers: Required value"),
        (
            {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, "replicas": -1},
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
)
async def test_invalid_workloads_are_refused(api: Api, spec: Json, problem: str) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    status = await api("POST", path, {"metadata": {"name": "w"}, "spec": spec}, expect=422)
    assert problem in status["message"]
    assert status["message"].startswith('Deployment.apps "w" is invalid: ')


async def test_jobs_have_one_completion_by_default(api: Api) -> None:
    spec = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
    job = await api("POST", "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": spec})
    assert (job["spec"]["parallelism"], job["spec"]["completions"], job["spec"]["backoffLimit"]) == (1, 1, 6)


async def test_a_budget_may_say_nothing(api: Api) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = await api("POST", path, {"metadata": {"name": "b"}, "spec": {"selector": {}}})
    assert budget["spec"] == {"selector": {}}
    assert budget["status"]["disruptionsAllowed"] == 0


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("system-mine", 1, "priority class names with 'system-' prefix are reserved for system use only"),
        ("huge", 1_000_000_001, "maximum allowed value of a user defined priority is 1000000000"),
    ],
)
async def test_system_priorities_are_reserved(api: Api, name: str, value: int, problem: str) -> None:
    status = await api("POST", PRIORITIES, {"metadata": {"name": name}, "value": value}, expect=422)
    assert problem in status["message"]


async def test_the_value_of_a_priority_class_is_fixed(api: Api) -> None:
    await api("POST", PRIORITIES, {"metadata": {"name": "p"}, "value": 5})
    merge = "application/merge-patch+json"
    status = await api("PATCH", f"{PRIORITIES}/p", {"value": 6}, content_type=merge, expect=422)
    assert "value: Forbidden: may not be changed in an update." in status["message"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priority": 7}, "the integer value of priority (7) must not be provided in pod spec; priority admission"),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec",
        ),
    ],
)
async def test_a_pod_cannot_choose_its_own_priority(api: Api, spec: Json, words: str) -> None:
    body = {"metadata": {"name": "p"}, "spec": {**spec, **TEMPLATE["spec"]}}
    status = await api("POST", f"{DEFAULT}/pods", body, expect=403)
    assert words in status["message"]


async def test_a_pod_needs_its_service_account(api: Api) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {**TEMPLATE["spec"], "serviceAccountName": "robot"}}
    status = await api("POST", f"{DEFAULT}/pods", pod, expect=403)
    why = 'error looking up service account default/robot: serviceaccount "robot" not found'
    assert status["message"] == f'pods "p" is forbidden: {why}'
    assert (await api("POST", "/api/v1/namespaces/none/pods", pod, expect=404))["reason"] == "NotFound"
    await api("POST", f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "robot"}})
    await api("POST", f"{DEFAULT}/pods", pod)


async def test_a_runtime_class_adds_its_overhead_and_where_pods_can_run(api: Api) -> None:
    scheduling = {"nodeSelector": {"runtime": "vm"}, "tolerations": [{"key": "vm", "operator": "Exists"}]}
    body = {"metadata": {"name": "vm"}, "handler": "h", "overhead": {"podFixed": {"cpu": "250m"}}}
    await api("POST", "/apis/node.k8s.io/v1/runtimeclasses", {**body, "scheduling": scheduling})
    spec = (await api.create_pod("p", runtimeClassName="vm", nodeSelector={"disk": "ssd"}))["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"disk": "ssd", "runtime": "vm"})
    assert {"key": "vm", "operator": "Exists"} in spec["tolerations"]
    await api.create_pod("same", runtimeClassName="vm", overhead={"cpu": "0.25"})
    for more, why in (
        ({"overhead": {"cpu": "1"}}, "Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
        ({"nodeSelector": {"runtime": "c"}}, "nodeSelector[runtime] = vm; pod.spec.nodeSelector[runtime] = c"),
    ):
        pod = {"metadata": {"name": "q"}, "spec": {**TEMPLATE["spec"], "runtimeClassName": "vm", **more}}
        assert why in (await api("POST", f"{DEFAULT}/pods", pod, expect=403))["message"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"runtimeClassName": "none"}, 'RuntimeClass "none" not found'),
        ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
    ],
)
async def test_a_pod_needs_its_runtime_class(api: Api, more: Json, why: str) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {**TEMPLATE["spec"], **more}}
    status = await api("POST", f"{DEFAULT}/pods", pod, expect=403)
    assert status["message"] == f'pods "p" is forbidden: pod rejected: {why}'


PLACED = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}


async def test_bound_pods_have_the_zone_and_region_of_their_node(api: Api) -> None:
    labels = {**PLACED, "disk": "ssd"}
    await api("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": labels}})
    await api("POST", "/api/v1/nodes", {"metadata": {"name": "bare"}})
    for name in ("p", "q"):
        await api.create_pod(name, labels={"app": "x", "topology.kubernetes.io/zone": "mine"})
    binding = {"metadata": {"name": "p", "labels": {"by": "me"}}, "target": {"kind": "Node", "name": "n"}}
    await api("POST", f"{DEFAULT}/pods/p/binding", binding)
    assert (await api("GET", f"{DEFAULT}/pods/p"))["metadata"]["labels"] == {"app": "x", "by": "me", **PLACED}
    await api("POST", f"{DEFAULT}/pods/q/binding", {"target": {"kind": "Node", "name": "bare"}})
    kept = (await api("GET", f"{DEFAULT}/pods/q"))["metadata"]["labels"]
    assert kept == {"app": "x", "topology.kubernetes.io/zone": "mine"}


async def test_so_have_pods_that_name_their_node(api: Api) -> None:
    await api("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": PLACED}})
    made = await api.create_pod("p", nodeName="n")
    assert made["metadata"]["labels"] == PLACED
    patch = {"metadata": {"labels": {"topology.kubernetes.io/zone": "b"}}}
    changed = await api("PATCH", f"{DEFAULT}/pods/p", patch, content_type="application/merge-patch+json")
    assert changed["metadata"]["labels"] == PLACED
    assert "labels" not in (await api.create_pod("elsewhere", nodeName="unknown"))["metadata"]


async def test_claims_grow_if_they_are_bound_and_their_class_expands_volumes(api: Api) -> None:
    for name, expands in (("grows", True), ("stays", False)):
        storage_class = {"metadata": {"name": name}, "provisioner": "csi.test", "allowVolumeExpansion": expands}
        await api("POST", f"{STORAGE}/storageclasses", storage_class)
    claims, grown = f"{DEFAULT}/persistentvolumeclaims", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    for name, class_name in (("a", "grows"), ("b", "stays"), ("c", "")):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await api("POST", claims, {"metadata": {"name": name}, "spec": {**spec, "storageClassName": class_name}})
        path = f"{claims}/{name}"
        early = await api("PATCH", path, grown, content_type="application/merge-patch+json", expect=422)
        assert "spec is immutable after creation" in early["message"]
        bound = {"status": {"phase": "Bound"}}
        await api("PATCH", f"{path}/status", bound, content_type="application/merge-patch+json")
        code = 200 if class_name == "grows" else 403
        answer = await api("PATCH", path, grown, content_type="application/merge-patch+json", expect=code)
        assert code == 200 or answer["message"] == (
            f'persistentvolumeclaims "{name}" is forbidden: only dynamically provisioned pvc can be resized and the '
            "storageclass that provisions the pvc must support resize"
        )
