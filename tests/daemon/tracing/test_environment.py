"""Which variables ask for traces."""

import pytest

from trio_sched.daemon.tracing import environment
from trio_sched.daemon.tracing.environment import TracesWanted, TracingError, traces_wanted

COLLECTOR = TracesWanted(to_collector=True)


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, COLLECTOR),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, COLLECTOR),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "True"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, COLLECTOR),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, TracesWanted(True, True)),
    ],
)
def test_the_standard_variables_switch_traces_on(variables: dict[str, str], wanted: TracesWanted | None) -> None:
    assert traces_wanted(variables) == wanted


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER: the exporter 'zipkin' is not supported"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: the protocol 'grpc' is not supported; use http/protobuf",
        ),
    ],
)
def test_what_is_not_supported_is_an_error(variables: dict[str, str], said: str) -> None:
    with pytest.raises(TracingError) as refused:
        traces_wanted(variables)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("variables", "cause"),
    [
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "OTEL_TRACES_EXPORTER=otlp"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:secret@c:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT asks"),
    ],
)
def test_without_the_extra_the_error_says_how_to_install_it(
    variables: dict[str, str], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_PACKAGES", ("trio_sched.nowhere.at_all",))
    assert traces_wanted({}) is None
    with pytest.raises(TracingError) as refused:
        traces_wanted(variables)
    assert cause in str(refused.value)
    assert "pip install 'trio-sched[otel]'" in str(refused.value)
    assert "secret" not in str(refused.value)
