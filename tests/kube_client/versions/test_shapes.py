from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.kube_client.decoding.decoding import Codec
from trio_sched.kube_client.errors import UndecodableObject
from trio_sched.kube_client.versions.api_versions import VERSIONED, body_in_version, in_version, versioned

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["spec", "devices", "requests", "exactly", "basic", "capacity", "name", "disruptionMode", "status"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
CLAIM = {
    "metadata": {"name": "c", "namespace": "d"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "one", "exactly": {"deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount"}},
                {"name": "any", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}]},
            ]
        }
    },
}
OLD_CLAIM = {
    "metadata": {"name": "c", "namespace": "d"},
    "spec": {
        "devices": {
            "requests": [
                {"name": "one", "deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount"},
                {
                    "name": "any",
                    "deviceClassName": "",
                    "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}],
                },
            ]
        }
    },
}
SLICE = {
    "metadata": {"name": "s"},
    "spec": {"driver": "d", "devices": [{"name": "g0", "capacity": {"mem": {"value": "1Gi"}}, "nodeName": "n"}]},
}
OLD_SLICE = {
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d",
        "devices": [{"name": "g0", "basic": {"capacity": {"mem": {"value": "1Gi"}}, "nodeName": "n"}}],
    },
}
OLDER_SLICE = {
    "metadata": {"name": "s"},
    "spec": {"driver": "d", "devices": [{"name": "g0", "basic": {"capacity": {"mem": "1Gi"}, "nodeName": "n"}}]},
}
GROUP = {
    "metadata": {"name": "g", "namespace": "d"},
    "spec": {
        "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": "PodGroup",
    },
    "status": {"conditions": [{"type": "PodGroupScheduled", "status": "True"}, {"type": "DisruptionTarget"}]},
}
NEW_GROUP = {
    "metadata": {"name": "g", "namespace": "d"},
    "spec": {
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
    },
    "status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True"}, {"type": "DisruptionTarget"}]},
}


def version(kind: str, name: str) -> Any:
    row = versioned(KINDS[kind])
    assert row is not None
    return in_version(KINDS[kind], next(one for one in row.versions if one.name == name))


@pytest.mark.parametrize(
    ("kind", "other", "there", "here"),
    [
        ("ResourceClaim", "v1beta1", OLD_CLAIM, CLAIM),
        ("ResourceClaim", "v1beta2", CLAIM, CLAIM),
        ("ResourceSlice", "v1beta1", OLD_SLICE, SLICE),
        ("ResourceClaim", "v1alpha3", OLD_CLAIM, CLAIM),
        ("ResourceSlice", "v1alpha3", OLDER_SLICE, SLICE),
        ("PodGroup", "v1beta1", NEW_GROUP, GROUP),
        ("PodGroup", "v1alpha3", NEW_GROUP, GROUP),
    ],
)
def test_an_object_is_the_same_in_every_version(kind: str, other: str, there: Any, here: Any) -> None:
    read = Codec(version(kind, other)).object(msgspec.json.encode(there))
    assert read == Codec(KINDS[kind]).object(msgspec.json.encode(here))
    assert type(read) is KINDS[kind].type


@pytest.mark.parametrize(
    ("kind", "other", "there", "here"),
    [
        ("ResourceClaim", "v1beta1", OLD_CLAIM, CLAIM),
        ("ResourceSlice", "v1beta1", OLD_SLICE, SLICE),
        ("ResourceSlice", "v1alpha3", OLDER_SLICE, SLICE),
        ("PodGroup", "v1beta1", NEW_GROUP, GROUP),
    ],
)
def test_what_is_written_has_the_shape_and_the_name_of_the_served_version(
    kind: str, other: str, there: Any, here: Any
) -> None:
    served = version(kind, other)
    body = body_in_version(KINDS[kind], served, {"apiVersion": KINDS[kind].api_version, **here})
    assert body["apiVersion"] == served.api_version
    assert Codec(served).object(msgspec.json.encode(body)) == Codec(served).object(msgspec.json.encode(there))
    assert body_in_version(KINDS[kind], KINDS[kind], here) is here


def test_results_of_v1alpha3_are_for_administrators_if_the_request_is() -> None:
    result = {"request": "one", "driver": "d", "pool": "p", "device": "g0"}
    request = {"name": "one", "deviceClassName": "gpu", "adminAccess": True}
    fields = {
        "metadata": {"name": "c", "namespace": "d"},
        "spec": {"devices": {"requests": [request, {"name": "two", "deviceClassName": "gpu"}]}},
        "status": {"allocation": {"devices": {"results": [result, {**result, "request": "two", "device": "g1"}]}}},
    }
    read = Codec(version("ResourceClaim", "v1alpha3")).object(msgspec.json.encode(fields))
    assert [one.admin_access for one in read.status.allocation.devices.results] == [True, None]


def test_a_claim_of_a_controller_is_left_out() -> None:
    fields = {**OLD_CLAIM, "spec": {**OLD_CLAIM["spec"], "controller": "driver.test"}}
    with pytest.raises(UndecodableObject, match=r"driver\.test"):
        Codec(version("ResourceClaim", "v1alpha3")).object(msgspec.json.encode(fields))


def test_a_body_that_names_another_version_itself_is_sent_as_it_is() -> None:
    body = {"apiVersion": "resource.k8s.io/v1beta1", **OLD_CLAIM}
    assert body_in_version(KINDS["ResourceClaim"], version("ResourceClaim", "v1beta1"), body) is body


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceSlice"])
@given(fields=st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), JSON, max_size=3))
def test_any_json_is_converted_or_refused_as_malformed(kind: str, fields: Any) -> None:
    codec = Codec(version(kind, "v1beta1"))
    page = codec.page(msgspec.json.encode({"items": [fields]}))
    assert [type(one) for one in page.objects] == [KINDS[kind].type] * (1 - len(page.undecoded))


@pytest.mark.parametrize("key", VERSIONED, ids=lambda key: key[1])
@given(fields=st.dictionaries(st.sampled_from(["spec", "status"]), JSON, max_size=2))
def test_conversions_leave_alone_what_they_do_not_know_and_change_nothing_in_place(key: Any, fields: Any) -> None:
    before = msgspec.json.encode(fields)
    for one in VERSIONED[key].versions:
        for convert in (one.read, one.write):
            if convert is not None:
                assert isinstance(convert(fields), dict)
    assert msgspec.json.encode(fields) == before


@pytest.mark.parametrize("field", ["deviceClassName", "selectors"])
def test_a_taint_rule_that_would_taint_more_than_it_says_is_left_out(field: str) -> None:
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"driver": "d", field: "x"}, "taint": {"key": "k"}}}
    codec = Codec(version("DeviceTaintRule", "v1alpha3"))
    with pytest.raises(UndecodableObject, match=rf"r left out: spec.deviceSelector.{field} is not evaluated"):
        codec.object(msgspec.json.encode(rule))
    del rule["spec"]["deviceSelector"][field]  # type: ignore[index,arg-type]
    assert codec.object(msgspec.json.encode(rule)).spec.device_selector.driver == "d"
