from simulator_api import Api
from trio.testing import MockClock

from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.errors.not_simulated import notices

PATH = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


async def test_kubectl_is_told_what_is_not_simulated(autojump_clock: MockClock) -> None:
    api = Api(ApiServer(now=trio_clock()))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    body = {"metadata": {"name": "app"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    response = await api.raw("POST", PATH, body)
    assert response.status == 201
    assert "HorizontalPodAutoscaler is not simulated" in response.headers["warning"]


def test_each_kind_is_named_once() -> None:
    kinds = ["Pod", "HorizontalPodAutoscaler", "Node", "HorizontalPodAutoscaler"]
    assert [text.split()[0] for text in notices(kinds)] == ["HorizontalPodAutoscaler"]


def test_what_would_change_or_refuse_objects_is_named() -> None:
    [webhook, policy] = notices(["MutatingWebhookConfiguration", "ValidatingAdmissionPolicy"])
    assert webhook.startswith("MutatingWebhookConfiguration is not simulated: no webhook is called")
    assert policy == "ValidatingAdmissionPolicy is not simulated: nothing is refused by it"
