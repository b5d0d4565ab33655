import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.apiextensions.custom_schemas import decode_custom
from trio_sched.simulator.validation.meta.decoding import decode
from trio_sched.simulator.validation.meta.shapes import fields_of, is_well_formed, message_of_kind, raw_table

POD: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def decoded(spec: Json) -> tuple[list[str], list[str]]:
    found = decode({**POD, "spec": {**POD["spec"], **spec}}, "core.v1.Pod")
    return [f"{one.path}: {one.text}" for one in found.wrong], [one.text for one in found.unknown]


def test_the_table_is_closed() -> None:
    scalars = {"string", "bool", "int32", "int64", "double", "bytes", "time", "micro_time", "quantity", "int_or_string"}
    for message, fields in raw_table().items():
        for name, (_, type_, *_) in fields.items():
            inner = type_.split()[-1]
            assert inner in raw_table() or inner in scalars | {"raw"}, (message, name)


def test_what_is_right_is_taken_as_it_is() -> None:
    assert is_well_formed(POD, "core.v1.Pod")
    assert decode(POD, "core.v1.Pod").fields is POD


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"priority": "high"}, "spec.priority: must be a whole number of 32 bits, not 'high'"),
        ({"priority": 1 << 31}, "spec.priority: must be a whole number of 32 bits, not 2147483648"),
        ({"priority": True}, "spec.priority: must be a whole number of 32 bits, not true"),
        ({"priority": 1.5}, "spec.priority: must be a whole number of 32 bits, not 1.5"),
        ({"hostNetwork": "yes"}, "spec.hostNetwork: must be true or false, not 'yes'"),
        ({"nodeSelector": {"a": 5}}, "spec.nodeSelector[a]: must be a text; put it in quotes, not 5"),
        ({"tolerations": {}}, "spec.tolerations: must be a list, not {}"),
        ({"affinity": []}, "spec.affinity: must be a mapping, not []"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead[cpu]: must be a quantity such as 500m or 2Gi, not 'x'"),
        ({"overhead": {"cpu": [1]}}, "spec.overhead[cpu]: must be a quantity such as 500m or 2Gi, not [1]"),
    ],
)
def test_values_of_the_wrong_type_are_named(spec: Json, problem: str) -> None:
    assert decoded(spec) == ([problem], [])


def test_the_texts_of_the_decoder_are_kept() -> None:
    spec = {"containers": [{"ports": [{"containerPort": "http"}]}]}
    (wrong,) = decode({"spec": spec}, "core.v1.Pod").wrong
    place = "ContainerPort.spec.containers.ports.containerPort"
    assert wrong.decoder_text == f"json: cannot unmarshal string into Go struct field {place} of type int32"


def test_unknown_fields_are_named_with_the_one_that_was_meant() -> None:
    wrong, unknown = decoded({"nodeSelecter": {}, "zzz": 1})
    assert wrong == []
    assert unknown == ["unknown field; did you mean 'nodeSelector'?", "unknown field"]
    found = decode({"spec": {"containers": [{"nam": "x"}]}}, "core.v1.Pod")
    assert found.unknown[0].decoder_text == 'unknown field "spec.containers[0].nam"'
    assert found.fields == {"spec": {"containers": [{}]}}


def test_nulls_are_as_if_they_were_not_there() -> None:
    fields = {"metadata": {"name": "p", "labels": {"a": None}, "creationTimestamp": None}, "spec": {"affinity": None}}
    assert decode(fields, "core.v1.Pod").fields == {"metadata": {"name": "p", "labels": {"a": ""}}, "spec": {}}


@pytest.mark.parametrize(
    ("moment", "fits"),
    [
        ("2026-01-31T08:00:00Z", True),
        ("2026-01-30T08:00:00.5+01:00", True),
        ("2026-02-30T08:00:00Z", False),
        ("2026-01-01 08:00:00Z", False),
        ("2026-01-01T08:00:00", False),
        ("now", False),
        (5, False),
    ],
)
def test_times_are_those_of_rfc_3339(moment: object, fits: bool) -> None:
    assert (not decode({"metadata": {"creationTimestamp": moment}}, "core.v1.Pod").wrong) is fits


def test_secrets_are_base64() -> None:
    assert decode({"data": {"a": "YQ=="}}, "core.v1.Secret").wrong == []
    assert decode({"data": {"a": "not base64"}}, "core.v1.Secret").wrong


def test_whole_numbers_may_be_written_with_a_point() -> None:
    assert decode({"spec": {"priority": 5.0}}, "core.v1.Pod").fields == {"spec": {"priority": 5}}


def test_of_custom_resources_only_the_metadata_is_known() -> None:
    found = decode_custom({"apiVersion": "example.com/v1", "metadata": {"name": 5, "x": 1}, "spec": {"y": [1]}}, None)
    assert [one.path for one in found.wrong] == ["metadata.name"]
    assert [one.path for one in found.unknown] == ["metadata.x"]
    assert found.fields["spec"] == {"y": [1]}


def test_inlined_messages_show_their_fields() -> None:
    assert "emptyDir" in fields_of("core.v1.Volume")
    assert "volumeSource" not in fields_of("core.v1.Volume")
    assert message_of_kind("rbac.authorization.k8s.io/v1", "Role") in raw_table()
