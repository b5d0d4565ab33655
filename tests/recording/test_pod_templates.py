"""Pods written as what they differ in from another one are read as they were."""

import msgspec
import pytest
from msgspec import Raw, structs

from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.pod import Pod, PodStatus
from trio_sched.objects.storage.volume import Volume
from trio_sched.recording.pod_templates import KnownTemplates, PodTemplates
from trio_sched.recording.redaction import Redaction
from trio_sched.testing import pod

FIRST = pod("p-1", cpu="1", labels={"app": "web"}, annotations={"note": "hunter2"})
FIRST = structs.replace(
    FIRST,
    metadata=structs.replace(FIRST.metadata, uid="u1", owner_references=(OwnerReference(name="set"),)),
    spec=structs.replace(FIRST.spec, volumes=(Volume(name="token-1"),)),
)


def like_first(metadata: dict[str, object] | None = None, status: PodStatus = FIRST.status, **spec: object) -> Pod:
    """Another pod of the same template, but for what is given."""
    identity = {"name": "p-2", "uid": "u2", "resource_version": "7", "creation_timestamp": "2026-01-01T00:00:00Z"}
    return Pod(
        structs.replace(FIRST.metadata, **{**identity, **(metadata or {})}), structs.replace(FIRST.spec, **spec), status
    )


OTHERS = {
    "nothing else": like_first(),
    "its node": like_first(node_name="node-1"),
    "the name of a volume": like_first(volumes=(Volume(name="token-2"),)),
    "volumes and node": like_first(volumes=(Volume(name="token-2"),), node_name="node-1"),
    "no volumes": like_first(volumes=None),
    "its spec": like_first(priority=5, node_name="node-1"),
    "its labels": like_first({"labels": {"app": "web", "index": "2"}}),
    "its namespace": like_first({"namespace": "other"}),
    "its status": like_first(status=PodStatus(phase="Running", nominated_node_name="node-2")),
    "its owner": like_first({"owner_references": (OwnerReference(name="other"),)}),
    "its containers": like_first(containers=pod("x", cpu="2").spec.containers),
}


def written(templates: PodTemplates, one: Pod) -> Raw:
    return Raw(msgspec.json.encode(templates.encode(one)))


def read(known: KnownTemplates, templates: PodTemplates, raw: Raw) -> Pod:
    known.add({number: Raw(msgspec.json.encode(one)) for number, one in templates.take_new().items()})
    return known.decode(raw)


def without_annotations(one: Pod) -> Pod:
    return structs.replace(one, metadata=structs.replace(one.metadata, annotations=None))


@pytest.mark.parametrize("name", OTHERS)
def test_a_pod_that_differs_in_something_is_read_as_it_was(name: str) -> None:
    templates, known = PodTemplates(Redaction()), KnownTemplates()
    for one in (FIRST, OTHERS[name], FIRST):
        assert read(known, templates, written(templates, one)) == without_annotations(one)


def test_a_pod_of_a_known_template_is_written_with_little_more_than_its_identity() -> None:
    templates = PodTemplates(Redaction())
    templates.encode(FIRST)
    templates.take_new()
    assert len(written(templates, like_first(volumes=(Volume(name="token-2"),)))) < 150
    assert not templates.take_new()


def test_templates_are_few_however_many_there_are() -> None:
    templates, known = PodTemplates(Redaction()), KnownTemplates()
    for number in range(1000):
        one = pod(f"p{number}", cpu=str(number))
        assert read(known, templates, written(templates, one)) == one
    assert len(known._pods) < 300


def test_a_pod_whose_template_is_missing_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="no template 0 of pod default/p-1"):
        KnownTemplates().decode(written(PodTemplates(Redaction()), FIRST))
