"""Records whose names are hashed."""

import msgspec
import pytest
from msgspec import Raw

from trio_sched.recording.hashed_names import KEY_BYTES, NameHasher
from trio_sched.recording.records import (
    Asked,
    Changed,
    Configured,
    Decided,
    Existed,
    FirstList,
    Flushed,
    GroupTried,
    OnNodes,
    PlacesReleased,
    Record,
    Requeued,
    Reserved,
    Templates,
    decode_records,
    encode_records,
)

HASHER = NameHasher(bytes(KEY_BYTES))
H = HASHER.hash


def replaced(record: Record) -> Record:
    (found,) = decode_records(HASHER.replace(encode_records([record])))
    return found  # type: ignore[no-any-return]


def hashed(fields: object, kind: str = "Node") -> object:
    """An object without names."""
    record = replaced(FirstList(0.0, kind, [Raw(msgspec.json.encode(fields))]))
    assert isinstance(record, FirstList)
    return msgspec.json.decode(record.objects[0])


def test_words_are_hashed_one_by_one_so_that_names_made_of_others_still_are() -> None:
    assert H("shop-7") == f"{H('shop')}-7"
    assert f"{H('web-0')}-{H('scratch')}" == H("web-0-scratch")
    assert H("web") != H("shop")
    assert H("kube-system/default") == "kube-system/default"
    assert H("docker.io/shop/web:latest").endswith(":latest")
    assert NameHasher(b"\x01" * KEY_BYTES).hash("web") != H("web")
    assert H("") == ""


@pytest.mark.parametrize("name", ["web-5d8f7c9b6-x2x7q", "zone_1.rack-7", "Ünïcode-名前"])
def test_hashes_are_names_that_an_api_server_takes(name: str) -> None:
    assert all(
        part.isascii() and (part.isalnum() or not part)
        for part in H(name).replace("_", "-").replace(".", "-").split("-")
    )


def test_names_and_labels_of_objects_are_hashed_and_nothing_else() -> None:
    pod = {
        "metadata": {"name": "a", "namespace": "b", "labels": {"app": "c", "index": "3"}, "uid": "a"},
        "spec": {
            "nodeName": "n",
            "nodeSelector": {"zone": "z"},
            "containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}],
            "tolerations": [{"key": "gpu", "value": "a"}],
            "affinity": {"terms": [{"namespaces": ["b"], "labelSelector": {"matchLabels": {"app": "c"}}}]},
        },
        "status": {"conditions": [{"type": "Ready", "message": "a is here"}], "phase": "Running"},
    }
    assert hashed(pod) == {
        "metadata": {"name": H("a"), "namespace": H("b"), "labels": {"app": H("c"), "index": "3"}, "uid": "a"},
        "spec": {
            "nodeName": H("n"),
            "nodeSelector": {"zone": H("z")},
            "containers": [{"name": H("main"), "image": H("web:1"), "resources": {"requests": {"cpu": "1"}}}],
            "tolerations": [{"key": "gpu", "value": "a"}],
            "affinity": {"terms": [{"namespaces": [H("b")], "labelSelector": {"matchLabels": {"app": H("c")}}}]},
        },
        "status": {"conditions": [{"type": "Ready", "message": ""}], "phase": "Running"},
    }


def test_expressions_are_hashed_unless_they_compare_numbers() -> None:
    rules = [
        {"key": "zone", "operator": "In", "values": ["a", "7"]},
        {"key": "size", "operator": "Gt", "values": ["x"]},
        {"key": "gpu", "operator": "Exists"},
        "no rule",
    ]
    found = hashed({"metadata": {}, "matchExpressions": rules, "matchFields": [rules[0]]})
    of_zone = {"key": "zone", "operator": "In", "values": [H("a"), "7"]}
    assert found == {"metadata": {}, "matchExpressions": [of_zone, *rules[1:]], "matchFields": [of_zone]}


@pytest.mark.parametrize("kind", ["StorageClass", "DeviceClass", "PriorityClass", "CSIDriver"])
def test_names_of_classes_stay(kind: str) -> None:
    assert hashed({"metadata": {"name": "fast", "labels": {"a": "b"}}}, kind) == {
        "metadata": {"name": "fast", "labels": {"a": H("b")}}
    }


def test_a_field_of_another_type_than_usual_is_kept() -> None:
    odd = {
        "metadata": {"name": 7, "labels": None},
        "selector": [1],
        "containers": "x",
        "images": 3,
        "pool": {"name": "p"},
    }
    assert hashed(odd) == {**odd, "containers": "x", "pool": {"name": H("p")}}


def test_records_of_decisions_have_no_names() -> None:
    asked = Asked(["n"], {"n": 3}, ["P"], False)
    decided = Decided(1.0, "u", "n", ["P"], 1, 0, [(2, 0.5)], asked, True)
    assert replaced(decided) == Decided(
        1.0, "u", H("n"), ["P"], 1, 0, [(2, 0.5)], Asked([H("n")], {H("n"): 3}, ["P"], False), True
    )
    assert replaced(OnNodes([("u", "n", True)])) == OnNodes([("u", H("n"), True)])
    assert replaced(Existed({"u": "n"})) == Existed({"u": H("n")})
    assert replaced(Reserved(1.0, "u", "n", "binds")) == Reserved(1.0, "u", H("n"), "binds")
    assert replaced(PlacesReleased(1.0, "shop/g")) == PlacesReleased(1.0, H("shop/g"))
    assert replaced(Requeued(1.0, "u", [], [], "n", [])) == Requeued(1.0, "u", [], [], H("n"), [])
    assert replaced(Requeued(1.0, "u", [], [], None, [])) == Requeued(1.0, "u", [], [], None, [])
    assert replaced(Flushed(1.0, "backoff")) == Flushed(1.0, "backoff")
    group = GroupTried(1.0, "shop/g", ["u"], [("n", [])], "Unschedulable", "n is full", 0, [], True)
    assert replaced(group) == GroupTried(1.0, H("shop/g"), ["u"], [(H("n"), [])], "Unschedulable", "", 0, [], True)


def test_changes_and_templates_of_pods_have_no_names() -> None:
    def raw(value: object) -> Raw:
        return Raw(msgspec.json.encode(value))

    metadata = {"name": "p", "namespace": "shop"}
    deleted = Changed(0.0, "Pod", [("DELETED", raw({"metadata": metadata}))])
    new = Changed(0.0, "Pod", [("ADDED", raw([1, "p", "shop", "u", "7", None, "n", None, None, None, None]))])
    patched = Changed(
        0.0, "Pod", [("PATCHED", raw(["p", "shop", "8", {"zone": "a"}, None, {"nodeName": "n"}, "n", None]))]
    )
    found = [replaced(one) for one in (deleted, new, patched)]
    assert [msgspec.json.decode(one.changes[0][1]) for one in found if isinstance(one, Changed)] == [
        {"metadata": {"name": H("p"), "namespace": H("shop")}},
        [1, H("p"), H("shop"), "u", "7", None, H("n"), None, None, None, None],
        [H("p"), H("shop"), "8", {"zone": H("a")}, None, {"nodeName": H("n")}, H("n"), None],
    ]
    templates = replaced(Templates({1: raw({"metadata": metadata})}))
    assert isinstance(templates, Templates)
    assert msgspec.json.decode(templates.pods[1]) == {"metadata": {"name": H("p"), "namespace": H("shop")}}


def test_of_the_configuration_the_labels_of_added_affinity_are_hashed() -> None:
    text = """
profiles:
- schedulerName: special
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        terms:
        - matchExpressions:
          - {key: pool, operator: In, values: [web]}
"""
    found = replaced(Configured(0.0, text, {}, {}, {}))
    assert isinstance(found, Configured)
    assert H("web") in found.configuration
    assert "[web]" not in found.configuration
    assert "special" in found.configuration
    plain = Configured(0.0, "kind: X  # as it was", {}, {}, {})
    assert replaced(plain) == plain
