import pytest

from trio_sched.config.decode import decode_strictly
from trio_sched.config.errors import ConfigError
from trio_sched.config.wire_types import CONFIGURATION
from trio_sched.documents.json_reader import read_json


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        decode_strictly(read_json(text), CONFIGURATION)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "place", "wanted"),
    [
        ('{"parallelism": "x"}', "string", "KubeSchedulerConfiguration.parallelism", "int32"),
        ('{"parallelism": 2147483648}', "number 2147483648", "KubeSchedulerConfiguration.parallelism", "int32"),
        ('{"parallelism": 7.0}', "number 7.0", "KubeSchedulerConfiguration.parallelism", "int32"),
        (
            '{"enableProfiling": 1}',
            "number",
            "KubeSchedulerConfiguration.DebuggingConfiguration.enableProfiling",
            "bool",
        ),
        ('{"profiles": {}}', "object", "KubeSchedulerConfiguration.profiles", "[]v1.KubeSchedulerProfile"),
        ('{"profiles": [[]]}', "array", "KubeSchedulerConfiguration.profiles", "v1.KubeSchedulerProfile"),
        (
            '{"profiles": [{"plugins": {"score": {"enabled": [{"weight": true}]}}}]}',
            "bool",
            "Plugin.profiles.plugins.score.enabled.weight",
            "int32",
        ),
        (
            '{"clientConnection": {"qps": 1e40}}',
            "number 1e40",
            "ClientConnectionConfiguration.clientConnection.qps",
            "float32",
        ),
    ],
)
def test_a_wrong_type_is_reported_with_the_place_as_go_names_it(text: str, kind: str, place: str, wanted: str) -> None:
    assert refusal(text) == f"json: cannot unmarshal {kind} into Go struct field {place} of type {wanted}"


def test_the_first_wrong_type_wins_unless_a_duration_reads_itself() -> None:
    assert "KubeSchedulerConfiguration.parallelism" in refusal('{"parallelism": "x", "podMaxBackoffSeconds": "y"}')
    bad_duration = '{"parallelism": "x", "leaderElection": {"leaseDuration": null}}'
    assert refusal(bad_duration) == 'time: invalid duration ""'


def test_unknown_and_duplicate_fields_are_collected_in_document_order() -> None:
    text = (
        '{"foo": {"x": "}"}, "parallelism": 1, "profiles": [{"bad": 1}], "parallelism": 2, "foo": 3, "parallelism": 4}'
    )
    given, strict_errors = decode_strictly(read_json(text), CONFIGURATION)
    assert given["parallelism"] == 4
    assert strict_errors == [
        'unknown field "foo"',
        'unknown field "profiles[0].bad"',
        'duplicate field "parallelism"',
    ]


def test_null_is_the_same_as_nothing_except_in_a_list() -> None:
    text = '{"parallelism": null, "profiles": [null], "extenders": null}'
    given, _ = decode_strictly(read_json(text), CONFIGURATION)
    assert given == {"profiles": ({},)}


def test_broken_base64_is_reported_only_if_no_type_was_wrong_before() -> None:
    tls = '"extenders": [{"tlsConfig": {"caData": "Zm9v!"}}]'
    assert refusal(f"{{{tls}}}") == "illegal base64 data at input byte 4"
    assert "of type int32" in refusal(f'{{"parallelism": true, {tls}}}')


def test_a_number_of_thousands_of_digits_is_too_big_like_any_other() -> None:
    assert refusal(f'{{"parallelism": {"9" * 5000}}}').endswith("of type int32")
