import pytest

from trio_sched.cli.flags import (
    ArgumentError,
    FlagError,
    MissingFeatureError,
    flags_usage,
    logging_problems,
    option_problems,
    parse_flags,
    refuse_unsupported,
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
            ["--allow-metric-labels=a=b"],
            'metrics.allowListMapping: Invalid value: {"a":"b"}: must have keys with format `metricName,labelName` '
            'where metricName matches "[a-zA-Z_:][a-zA-Z0-9_:]*" and labelName matches "[a-zA-Z_][a-zA-Z0-9_]*"',
        ),
    ],
)
def test_options_out_of_range_are_named(argv: list[str], problem: str) -> None:
    assert [str(found) for found in option_problems(parse_flags(argv))] == [problem]


def test_flags_whose_feature_is_missing_refuse_the_start_instead_of_being_ignored() -> None:
    refuse_unsupported(parse_flags(["--client-ca-file=/ca.crt", "--disabled-metrics=a"]))
    with pytest.raises(MissingFeatureError, match="--vmodule: logging in this way"):
        refuse_unsupported(parse_flags(["--vmodule=a=1", "--secure-port=0"]))
    refuse_unsupported(parse_flags(["--bind-address=0.0.0.0", "-v=3", "--logging-format=json"]))


def test_the_usage_names_every_flag_with_type_and_default() -> None:
    usage = flags_usage("trio-sched")
    assert usage.startswith("Usage:\n  trio-sched [flags]\n\nMisc flags:\n\n      --config string")
    assert "--secure-port int" in usage
    assert "(default 10259)" in usage
    assert '(default "leases")' in usage
    assert "(default [/healthz,/readyz,/livez])" in usage
    assert "kube:GangScheduling=true|false (ALPHA - default=false)" in usage
    assert "  -h, --help" in usage
