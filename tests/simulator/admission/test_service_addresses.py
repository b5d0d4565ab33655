from pathlib import Path
from typing import Any

import pytest
from simulator_api import Api, Json

from trio_sched.simulator import ApiServer, populate
from trio_sched.simulator.manifests.manifests import ManifestError
from trio_sched.simulator.manifests.scenario import load_manifests

SERVICES = "/api/v1/namespaces/default/services"


def service(name: str = "s", *ports: Json, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"selector": {"a": "b"}, "ports": ports or [{"port": 80}], **spec}}


async def created(api: Api, body: Json) -> Json:
    spec: Json = (await api("POST", SERVICES, body))["spec"]
    return spec


async def refused(api: Api, method: str, path: str, body: Json) -> str:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    message: str = (await api(method, path, body, content_type=kind, expect=422))["message"]
    return message.partition(" is invalid: ")[2]


async def patched(api: Api, name: str, **spec: Any) -> Json:
    changed = await api("PATCH", f"{SERVICES}/{name}", {"spec": spec}, content_type="application/merge-patch+json")
    found: Json = changed["spec"]
    return found


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
async def test_ports_of_nodes_are_given_out(api: Api, kind: str) -> None:
    ports = [{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "b", "port": 80}]
    given = [port["nodePort"] for port in (await created(api, service("s", *ports, type=kind)))["ports"]]
    assert all(30086 <= one <= 32767 for one in given)
    assert given[0] == given[1] != given[2]


async def test_a_load_balancer_may_do_without(api: Api) -> None:
    spec = await created(api, service(type="LoadBalancer", allocateLoadBalancerNodePorts=False))
    assert "nodePort" not in spec["ports"][0]


async def test_what_external_addresses_reach_has_a_traffic_policy(api: Api) -> None:
    assert (await created(api, service(externalIPs=["1.2.3.4"])))["externalTrafficPolicy"] == "Cluster"
    assert "externalTrafficPolicy" not in await created(api, service("t"))


async def test_ports_that_are_not_given_out_are_not_kept_either(api: Api) -> None:
    port = {"port": 80, "nodePort": 30080}
    await created(api, service("s", port, type="LoadBalancer", allocateLoadBalancerNodePorts=False))
    assert "nodePort" not in (await patched(api, "s", ports=[{"port": 80}]))["ports"][0]


async def test_a_local_load_balancer_gets_a_port_for_health_checks(api: Api) -> None:
    spec = await created(api, service(type="LoadBalancer", externalTrafficPolicy="Local"))
    assert spec["healthCheckNodePort"] not in (0, spec["ports"][0]["nodePort"])


@pytest.mark.parametrize("number", [80, 29999, 32768])
async def test_a_port_outside_the_range_is_refused(api: Api, number: int) -> None:
    assert await refused(api, "POST", SERVICES, service("s", {"port": 80, "nodePort": number}, type="NodePort")) == (
        f"spec.ports[0].nodePort: Invalid value: {number}: provided port is not in the valid range. "
        "The range of valid ports is 30000-32767"
    )


async def test_a_port_is_given_out_once_and_again_after_its_service_is_gone(api: Api) -> None:
    wanted = service("a", {"port": 80, "nodePort": 30080}, type="NodePort")
    await created(api, wanted)
    again = {**wanted, "metadata": {"name": "b"}}
    problem = "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    assert await refused(api, "POST", SERVICES, again) == problem
    await created(api, service("c", type="NodePort"))
    change = {"spec": {"ports": [{"port": 80, "nodePort": 30080}]}}
    assert await refused(api, "PATCH", f"{SERVICES}/c", change) == problem
    await api("DELETE", f"{SERVICES}/a")
    assert (await created(api, again))["ports"][0]["nodePort"] == 30080


async def test_an_address_is_given_out_once(api: Api) -> None:
    await created(api, service("a", clusterIP="10.96.0.77"))
    assert await refused(api, "POST", SERVICES, service("b", clusterIP="10.96.0.77")) == (
        'spec.clusterIPs: Invalid value: ["10.96.0.77"]: failed to allocate IP 10.96.0.77: '
        "provided IP is already allocated"
    )


async def test_a_type_without_ports_of_nodes_gives_them_back(api: Api) -> None:
    first = await created(api, service(type="LoadBalancer", externalTrafficPolicy="Local", loadBalancerClass="a/b"))
    spec = await patched(api, "s", type="ClusterIP")
    assert spec["clusterIP"] == first["clusterIP"]
    assert "nodePort" not in spec["ports"][0]
    gone = ("healthCheckNodePort", "allocateLoadBalancerNodePorts", "loadBalancerClass", "externalTrafficPolicy")
    assert not set(gone) & spec.keys()
    outside = await patched(api, "s", type="ExternalName", externalName="example.com")
    assert not {"clusterIP", "clusterIPs"} & outside.keys()
    back = await patched(api, "s", type="NodePort", externalName=None)
    assert back["clusterIP"].startswith("10.96.")
    assert back["ports"][0]["nodePort"] >= 30086


async def test_what_a_change_is_about_is_not_removed_but_refused(api: Api) -> None:
    await created(api, service(type="NodePort"))
    change = {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30001}]}}
    assert "spec.ports[0].nodePort: Forbidden" in await refused(api, "PATCH", f"{SERVICES}/s", change)
    change = {"spec": {"type": "ClusterIP", "externalTrafficPolicy": "Local"}}
    assert "may only be set for externally-accessible services" in await refused(api, "PATCH", f"{SERVICES}/s", change)


async def test_a_replacement_keeps_the_ports_and_the_address(api: Api) -> None:
    first = await api("POST", SERVICES, service(type="NodePort"))
    version = first["metadata"]["resourceVersion"]
    body = service("s", {"port": 80, "name": ""}, {"port": 81, "name": "b"}, type="NodePort")
    body["spec"]["ports"][0]["name"] = "a"
    body["metadata"]["resourceVersion"] = version
    second = (await api("PUT", f"{SERVICES}/s", body))["spec"]
    assert second["clusterIP"] == first["spec"]["clusterIP"]
    assert len({port["nodePort"] for port in second["ports"]}) == 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}, "spec.clusterIPs[0]: Invalid value: "),
        ({"clusterIP": "None", "clusterIPs": ["None"]}, 'spec.clusterIPs[0]: Invalid value: ["None"]: may not change'),
        ({"loadBalancerClass": "c/d"}, 'spec.loadBalancerClass: Invalid value: "c/d": may not change once set'),
    ],
)
async def test_what_is_given_once_stays(api: Api, change: Json, problem: str) -> None:
    await created(api, service(type="LoadBalancer", loadBalancerClass="a/b"))
    assert problem in await refused(api, "PATCH", f"{SERVICES}/s", {"spec": change})


def test_thousands_of_services_have_addresses_of_their_own() -> None:
    server = ApiServer()
    populate(server, [{"apiVersion": "v1", "kind": "Service", **service(f"s{n}")} for n in range(3000)])
    stored = server.store.collection("services").objects.values()
    assert len({one.fields["spec"]["clusterIP"] for one in stored}) == len(stored) == 3001


def test_files_are_checked_likewise() -> None:
    port = {"port": 80, "nodePort": 30080}
    bodies = [{"apiVersion": "v1", "kind": "Service", **service(name, port, type="NodePort")} for name in "ab"]
    with pytest.raises(ManifestError, match=r"spec\.ports\[0\]\.nodePort: .* already allocated"):
        populate(ApiServer(), bodies)


def test_the_place_is_that_of_the_port(tmp_path: Path) -> None:
    lines = ["apiVersion: v1", "kind: Service", "metadata: {name: NAME}", "spec:", "  type: NodePort", "  ports:"]
    lines += ["  - port: 80", "    nodePort: 30080", "---"]
    (tmp_path / "services.yaml").write_text("\n".join(line.replace("NAME", name) for name in "ab" for line in lines))
    with pytest.raises(ManifestError) as refused:
        populate(ApiServer(), load_manifests([tmp_path / "services.yaml"]).manifests)
    (problem,) = refused.value.problems
    assert (problem.line, problem.what, problem.path) == (17, "Service default/b", "spec.ports[0].nodePort")


def test_dumps_have_the_ports_of_their_cluster() -> None:
    body = {"apiVersion": "v1", "kind": "Service", **service("s", {"port": 80, "nodePort": 8080}, type="NodePort")}
    body["metadata"] |= {"uid": "1", "namespace": "default"}
    server = ApiServer()
    populate(server, [body])
    stored = server.store.get("services", "default/s")
    assert stored is not None
    assert stored.fields["spec"]["ports"][0]["nodePort"] == 8080


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        ({}, ["IPv4"], "SingleStack"),
        ({"clusterIP": "fd00::1"}, ["IPv6"], "SingleStack"),
        ({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4"], "PreferDualStack"),
        ({"clusterIP": "None"}, ["IPv4"], "SingleStack"),
        ({"clusterIP": "None", "selector": {}}, ["IPv4", "IPv6"], "RequireDualStack"),
        ({"clusterIP": "None", "selector": {}, "ipFamilies": ["IPv6"]}, ["IPv6", "IPv4"], "RequireDualStack"),
        ({"type": "ExternalName", "externalName": "a.b"}, None, None),
    ],
)
async def test_families_of_addresses_are_filled_in(
    api: Api, spec: Json, families: list[str] | None, policy: str | None
) -> None:
    given = await created(api, service(**spec))
    assert (given.get("ipFamilies"), given.get("ipFamilyPolicy")) == (families, policy)


@pytest.mark.parametrize("names", [("clusterIP",), ("clusterIPs",), ("clusterIP", "clusterIPs")])
async def test_an_external_name_may_repeat_the_addresses_that_it_loses(api: Api, names: tuple[str, ...]) -> None:
    before = await created(api, service())
    spec = {"type": "ExternalName", "externalName": "a.b", **{name: before[name] for name in names}}
    after = (await api("PUT", f"{SERVICES}/s", {"metadata": {"name": "s"}, "spec": spec}))["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & after.keys()
