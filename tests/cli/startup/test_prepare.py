import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from trio_sched.cli.flags.flags import MissingFeatureError, parse_flags
from trio_sched.cli.startup.prepare import LoggingOptionsError, Prepared, check_elector, prepare
from trio_sched.config.errors import ConfigError
from trio_sched.config.load import load_configuration
from trio_sched.config.schema import LeaderElection
from trio_sched.errors import TrioSchedError
from trio_sched.objects.timestamps import SECOND_NS

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


Start = Callable[..., Prepared]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)

    def run(*flags: str, body: str | None = None) -> Prepared:
        with socket.socket() as free:  # whether the port is free is checked too
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        argv = [f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--secure-port={port}", *flags]
        if body is not None:
            client = f"clientConnection: {{kubeconfig: {tmp_path / 'kubeconfig'}}}\n"
            (tmp_path / "config.yaml").write_text(HEAD + client + body)
            argv.append(f"--config={tmp_path / 'config.yaml'}")
        return prepare(parse_flags(argv))

    return run


def test_a_plain_start_has_a_connection_a_profile_and_a_configuration_that_reads_back(start: Start) -> None:
    prepared = start()
    assert prepared.connection.server == "https://127.0.0.1:1"
    assert [ref.name for ref in prepared.profiles[0].points["bind"]] == ["DefaultBinder"]
    assert load_configuration(prepared.effective_yaml()).parallelism == 16


def test_port_0_serves_nothing_and_reads_nothing(start: Start) -> None:
    assert start("--secure-port=0", "--client-ca-file=/nope").serving is None


def test_the_first_check_that_fails_is_the_one_reported(start: Start) -> None:
    bad = "parallelism: 0\nprofiles: [{plugins: {filter: {enabled: [{name: Foo}]}}}]\n"
    everything = ("--feature-gates=Foo=true", "--logging-format=foo", "--secure-port=-1")
    with pytest.raises(ConfigError, match="unrecognized feature gate"):
        start(*everything, body=bad)
    with pytest.raises(LoggingOptionsError, match="Unsupported log format"):
        start(*everything[1:], body=bad)
    with pytest.raises(ConfigError, match="--secure-port -1"):
        start(*everything[2:], body=bad)
    with pytest.raises(ConfigError, match="parallelism"):
        start("--tls-cert-file=x", body=bad)
    with pytest.raises(ConfigError, match="missing filename for serving cert"):
        start("--tls-cert-file=x", body=bad.replace("parallelism: 0\n", ""))
    with pytest.raises(ConfigError, match='FilterPlugin "Foo" does not exist'):
        start(body=bad.replace("parallelism: 0\n", ""))


def test_a_plugin_from_elsewhere_counts_if_the_caller_knows_it(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    (tmp_path / "config").write_text(
        f"{HEAD}clientConnection: {{kubeconfig: {tmp_path / 'kubeconfig'}}}\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: Sort}, {name: Bind}]}}}]\n"
    )
    points = {"Sort": frozenset({"queue_sort"}), "Bind": frozenset({"bind"})}
    prepared = prepare(parse_flags([f"--config={tmp_path / 'config'}"]), points_of=points)
    assert [ref.name for ref in prepared.profiles[0].points["bind"]] == ["Bind"]


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        ("{caFile: /nonexistent/ca.crt}", "open /nonexistent/ca.crt: no such file or directory"),
        (
            "{insecure: true, caFile: /nonexistent/ca.crt}",
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        ("{caData: Zm9v}", "unable to load root certificates: unable to parse bytes as PEM block"),
        ("{certData: Zm9v, keyData: Zm9v}", "tls: failed to find any PEM data in certificate input"),
    ],
)
def test_an_extender_with_unusable_certificates_is_refused(start: Start, tls: str, problem: str) -> None:
    with pytest.raises(TrioSchedError) as caught:
        start(
            "--write-config-to=x", body=f"extenders: [{{urlPrefix: https://x, enableHTTPS: true, tlsConfig: {tls}}}]\n"
        )
    assert str(caught.value) == f"couldn't build extenders: {problem}"


def test_what_is_not_there_yet_refuses_a_run_but_not_the_writing_of_a_configuration(start: Start) -> None:
    gate = "--feature-gates=SchedulerAsyncAPICalls=true"
    with pytest.raises(MissingFeatureError, match="feature gate SchedulerAsyncAPICalls"):
        start(gate)
    assert start(gate, "--write-config-to=x").effective_yaml()


def test_every_alpha_gate_may_be_on(start: Start) -> None:
    assert start("--feature-gates=AllAlpha=true").gates.enabled("DRAWorkloadResourceClaims")


def test_extenders_are_settled_by_the_start(start: Start) -> None:
    (extender,) = start(body="extenders: [{urlPrefix: http://x}]\n").config.extenders
    assert extender.http_timeout_ns == 5 * SECOND_NS


def test_an_unreadable_configuration_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="open /nonexistent: no such file or directory"):
        prepare(parse_flags(["--config=/nonexistent"]))
    with pytest.raises(ConfigError, match=f"read {tmp_path}: is a directory"):
        prepare(parse_flags([f"--config={tmp_path}"]))
    (tmp_path / "latin").write_bytes(b"a: \xe9\n")
    with pytest.raises(ConfigError, match="yaml: invalid leading UTF-8 octet"):
        prepare(parse_flags([f"--config={tmp_path / 'latin'}"]))


@pytest.mark.parametrize(
    ("flags", "body"),
    [
        (("--config=a\0b",), None),
        (("--master=https://h", "--kubeconfig=a\0b"), None),
        ((), 'clientConnection: {kubeconfig: "a\\0b"}\n'),
        ((), 'extenders: [{urlPrefix: "https://x", tlsConfig: {caFile: "a\\0b"}}]\n'),
    ],
)
def test_a_nul_in_a_path_is_a_clear_error(tmp_path: Path, flags: tuple[str, ...], body: str | None) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    if body is not None:
        client = "" if "clientConnection" in body else f"clientConnection: {{kubeconfig: {tmp_path / 'kubeconfig'}}}\n"
        (tmp_path / "config.yaml").write_text(HEAD + client + body)
        flags = (f"--config={tmp_path / 'config.yaml'}",)
    with pytest.raises(TrioSchedError, match=r"open a\\x00b: invalid argument"):
        prepare(parse_flags(list(flags)))


def test_flags_without_a_file_are_judged_when_they_are_used(start: Start) -> None:
    with pytest.raises(ConfigError, match="burst is required to be greater than 0"):
        start("--kube-api-burst=-1")
    with pytest.raises(
        ConfigError, match="couldn't create resource lock: endpoints lock is removed, migrate to leases"
    ):
        start("--leader-elect-resource-lock=endpoints")
    assert (
        start("--leader-elect=false", "--leader-elect-resource-lock=foo").config.leader_election.resource_lock == "foo"
    )


@pytest.mark.parametrize(
    ("lease", "renew", "retry", "problem"),
    [
        (15.0, 12.0, 10.0, "renewDeadline must be greater than retryPeriod*JitterFactor"),
        (15.0, 12.001, 10.0, None),
        (10.0, 10.0, 2.0, "leaseDuration must be greater than renewDeadline"),
        (15.0, 10.0, 0.0, "retryPeriod must be greater than zero"),
    ],
)
def test_an_election_needs_periods_that_leave_room(
    lease: float, renew: float, retry: float, problem: str | None
) -> None:
    election = LeaderElection(
        lease_duration_ns=int(lease * SECOND_NS),
        renew_deadline_ns=int(renew * SECOND_NS),
        retry_period_ns=int(retry * SECOND_NS),
    )
    if problem is None:
        check_elector(election)
    else:
        with pytest.raises(ConfigError) as caught:
            check_elector(election)
        assert str(caught.value) == f"couldn't create leader elector: {problem}"
