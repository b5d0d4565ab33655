from pathlib import Path

import pytest

from trio_sched.cli.flags.flags import (
    ArgumentError,
    FlagError,
    flag_values,
    flags_usage,
    logging_problems,
    option_problems,
    parse_flags,
)
from trio_sched.config.feature_gates import DEFAULT_GATES, resolve_feature_gates
from trio_sched.config.flag_overrides import FlagOverrides


def test_an_ordinary_kube_scheduler_command_line_is_accepted() -> None:
    flags = parse_flags(
        [
            "--config=/etc/kubernetes/scheduler.yaml",
            "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
            "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
            "--bind-address=127.0.0.1",
            "--leader-elect=true",
            "--profiling=false",
            "-v=2",
        ]
    )
    assert flags.config == "/etc/kubernetes/scheduler.yaml"
    assert flags["v"] == 2
    assert flags["secure-port"] == 10259


def test_only_flags_that_were_given_override_the_configuration() -> None:
    assert parse_flags([]).overrides() == FlagOverrides()
    given = parse_flags(["--leader-elect-lease-duration=15s", "--kube-api-qps=7", "--leader-elect=0"]).overrides()
    assert given == FlagOverrides(lease_duration_ns=15_000_000_000, qps=7.0, leader_elect=False)


def test_arguments_are_refused_unless_they_are_empty_or_help_is_wanted() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_flags(["foo", "", "--version"])
    assert str(caught.value) == '"kube-scheduler" does not take any arguments, got ["foo" ""]'
    assert parse_flags([""]).config == ""
    assert parse_flags(["--help", "foo"]).help


@pytest.mark.parametrize(
    ("argv", "version"),
    [
        ([], ""),
        (["--version"], "true"),
        (["--version=raw"], "raw"),
        (["--version=false"], ""),
        (["--version=v1.36.2-x"], "v1.36.2-x"),
    ],
)
def test_the_version_flag_says_what_to_print(argv: list[str], version: str) -> None:
    assert parse_flags(argv).version == version


def test_another_version_cannot_be_reported() -> None:
    with pytest.raises(FlagError, match=r'must match major/minor/patch of default version "v1\.36\.2"'):
        parse_flags(["--version=v1.36.9"])


@pytest.mark.parametrize(
    ("argv", "problems"),
    [
        (["--logging-format=json"], []),
        (["--logging-format=foo"], ['format: Invalid value: "foo": Unsupported log format']),
        (
            ["--logging-format=json", "--vmodule=a=1", "--log-json-split-stream"],
            [
                "vmodule: Forbidden: Only supported for text log format",
                "options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled",
            ],
        ),
        (["--log-flush-frequency=0s"], ['flushFrequency: Invalid value: "0s": Must be greater than zero']),
    ],
)
def test_logging_flags_are_judged(argv: list[str], problems: list[str]) -> None:
    assert list(map(str, logging_problems(parse_flags(argv), DEFAULT_GATES))) == problems


def test_json_logs_are_a_beta_feature() -> None:
    gates = resolve_feature_gates(["AllBeta=false"])
    (problem,) = logging_problems(parse_flags(["--logging-format=json"]), gates)
    assert str(problem) == "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature"


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (
            ["--secure-port=99999"],
            "--secure-port 99999 must be between 1 and 65535, inclusive. It cannot be turned off with 0",
        ),
        (
            ["--secure-port=-1"],
            "--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure port",
        ),
        (
            ["--show-hidden-metrics-for-version=1.30"],
            'metrics.showHiddenMetricsForVersion: Invalid value: "1.30": must be omitted or have the value '
            "'1.35'; only the previous minor version is allowed",
        ),
        (
            ["--disabled-metrics=a,b-c"],
            'metrics.disabledMetrics: Invalid value: ["a","b-c"]: must be fully qualified metric names matching '
            '"^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "b-c"',
        ),
        (["--requestheader-group-headers= ,x"], 'empty value in "requestheader-group-headers"'),
        (
            ["--requestheader-uid-headers=x"],
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - "
            "API aggregation will not work",
        ),
        (
            ["--allow-metric-labels-manifest=/nonexistent"],
            'metrics.allowListMappingManifest: Invalid value: "/nonexistent": failed to read allow list manifest: '
            "open /nonexistent: no such file or directory",
        ),
        (
            ["--allow-metric-labels=a=b"],
            'metrics.allowListMapping: Invalid value: {"a":"b"}: must have keys with format `metricName,labelName` '
            'where metricName matches "[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"',
        ),
    ],
)
def test_options_out_of_range_are_named(argv: list[str], problem: str) -> None:
    assert [str(found) for found in option_problems(parse_flags(argv), DEFAULT_GATES)] == [problem]


def test_uid_headers_need_their_gate() -> None:
    gates = resolve_feature_gates(["RemoteRequestHeaderUID=false"])
    (problem,) = option_problems(parse_flags(["--requestheader-uid-headers=x-remote-uid"]), gates)
    assert str(problem) == '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled'


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ("a,b: c,d\n", None),
        ("[]", "failed to parse allow list manifest: it is no mapping of metricName,labelName to the allowed values"),
        ("a,b: 1\n", 'failed to parse allow list manifest: the value of "a,b" is no text'),
        ("a: b\n", "invalid allow list mapping in manifest: metrics.allowListMappingManifest: Invalid value"),
    ],
)
def test_a_manifest_of_labels_is_read_before_the_start(manifest: str, problem: str | None, tmp_path: Path) -> None:
    path = tmp_path / "labels.yaml"
    path.write_text(manifest)
    found = [
        str(one) for one in option_problems(parse_flags([f"--allow-metric-labels-manifest={path}"]), DEFAULT_GATES)
    ]
    assert len(found) == (problem is not None)
    assert not problem or problem in found[0]


def test_labels_are_given_by_flag_or_by_manifest_but_not_by_both(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("")
    flags = parse_flags(["--allow-metric-labels=a,b=c", f"--allow-metric-labels-manifest={tmp_path / 'm'}"])
    (problem,) = option_problems(flags, DEFAULT_GATES)
    assert str(problem).endswith("cannot specify both allowListMapping and allowListMappingManifest")


def test_every_flag_has_a_text_as_go_prints_it() -> None:
    flags = parse_flags(
        [
            "--feature-gates=B=true,kube:A=false",
            "--tls-curve-preferences=23,29",
            "--tls-sni-cert-key=a,b:x,y",
            "--allow-metric-labels=a,b=c",
            "--kube-api-qps=0.1",
            "--log-flush-frequency=1m",
            "--bind-address=",
            "--vmodule=a=1,b*=2",
            "--requestheader-allowed-names=a,b",
        ]
    )
    values = flag_values(flags)
    assert list(values) == sorted(values)
    shown = {name: values[name] for name in flags.given} | {"leader-elect": values["leader-elect"]}
    assert shown == {
        "allow-metric-labels": '["a,b=c"]',
        "bind-address": "<nil>",
        "feature-gates": ":B=true,kube:A=false",
        "kube-api-qps": "0.1",
        "leader-elect": "true",
        "log-flush-frequency": "1m0s",
        "requestheader-allowed-names": "[a,b]",
        "tls-curve-preferences": "[23,29]",
        "tls-sni-cert-key": "[a,b:x,y]",
        "vmodule": "a=1,b*=2",
    }


def test_on_a_terminal_the_usage_is_as_wide_as_that() -> None:
    def longest(columns: int) -> int:
        return max(len(line) for line in flags_usage("trio-sched", columns).splitlines() if " kube:" not in line)

    assert longest(100) <= 100
    assert longest(10) > 100  # there is no room for any text


def test_the_usage_names_every_flag_with_type_and_default() -> None:
    usage = flags_usage("trio-sched")
    assert usage.startswith("Usage:\n  trio-sched [flags]\n\nMisc flags:\n\n      --config string")
    assert "--secure-port int" in usage
    assert "(default 10259)" in usage
    assert '(default "leases")' in usage
    assert "(default [/healthz,/readyz,/livez])" in usage
    assert "kube:GangScheduling=true|false (ALPHA - default=false)" in usage
    assert "  -h, --help" in usage
