import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
import trio

from trio_sched.cli.flags.flags import flags_usage, parse_flags
from trio_sched.cli.flags.legacy_flags import LEGACY_NAMES
from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.startup.prepare import prepare
from trio_sched.config.errors import ConfigError
from trio_sched.simulator import ApiServer, load_manifests, populate, serve

Capture = pytest.CaptureFixture[str]
Put = Callable[[str], str]

GROUP = "apiVersion: kubescheduler.config.k8s.io"
KIND = "kind: KubeSchedulerConfiguration"
POLICY = json.dumps(
    {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": "GeneralPredicates"}, {"name": "MatchInterPodAffinity"}],
        "priorities": [{"name": "MostRequestedPriority", "weight": 2}],
    }
)
MASTER = "--master=http://127.0.0.1:1"
DOCUMENTS = {
    "v1alpha1": f"{GROUP}/v1alpha1\n{KIND}\nschedulerName: mine\ndisablePreemption: true\n",
    "v1alpha1 with a policy": (
        f"{GROUP}/v1alpha1\n{KIND}\nalgorithmSource: {{policy: {{file: {{path: POLICY_FILE}}}}}}\n"
    ),
    "v1alpha2": f"{GROUP}/v1alpha2\n{KIND}\nprofiles: [{{schedulerName: a}}, {{schedulerName: b}}]\n",
    "v1beta1": (
        f"{GROUP}/v1beta1\n{KIND}\nprofiles: [{{plugins: {{score: {{disabled: [{{name: NodeResourcesLeastAllocated}}], "
        "enabled: [{name: NodeResourcesMostAllocated, weight: 3}]}}}]\n"
    ),
    "v1beta2": f"{GROUP}/v1beta2\n{KIND}\nhealthzBindAddress: ':0'\nleaderElection: {{leaderElect: false}}\n",
    "v1beta3": f"{GROUP}/v1beta3\n{KIND}\nparallelism: 4\nextenders: [{{urlPrefix: http://x}}]\n",
    "componentconfig": f"apiVersion: componentconfig/v1alpha1\n{KIND}\nalgorithmProvider: ClusterAutoscalerProvider\n",
}


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a file, and says where."""

    def write(text: str) -> str:
        path = tmp_path / f"file-{len(list(tmp_path.iterdir()))}"
        path.write_text(text)
        return str(path)

    return write


def effective(*flags: str) -> str:
    return prepare(parse_flags([MASTER, "--write-config-to=x", *flags])).effective_yaml()


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_the_text_that_is_printed_means_what_the_old_document_means(document: str, put: Put, capsys: Capture) -> None:
    old = put(document.replace("POLICY_FILE", put(POLICY)))
    assert main(["convert-config", old]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert printed.startswith("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert effective(f"--config={old}") == effective(f"--config={put(printed)}")
    assert effective(f"--config={old}") != effective()


@pytest.mark.parametrize(
    "flags",
    [
        ["--policy-config-file=POLICY_FILE", "--kubeconfig=", "--scheduler-name=mine"],
        ["--policy-config-file=POLICY_FILE", "--algorithm-provider=ClusterAutoscalerProvider"],
        ["--algorithm-provider=ClusterAutoscalerProvider", "--kube-api-qps=7.5", "--lock-object-name=lock"],
        ["--hard-pod-affinity-symmetric-weight=0", "--profiling=false"],
        ["--bind-pods-qps=5", "--bind-pods-burst=6", "--leader-elect-retry-period=1s"],
    ],
)
def test_the_text_that_is_printed_means_what_the_old_flags_mean(flags: list[str], put: Put, capsys: Capture) -> None:
    policy = put(POLICY)
    given = [flag.replace("POLICY_FILE", policy) for flag in flags]
    assert main(["convert-config", *given]) == ExitCode.OK
    config = put(capsys.readouterr().out)
    election = [flag for flag in given if flag.startswith("--leader-elect")]
    assert effective(*given) == effective(f"--config={config}", *election)
    assert effective(*given) != effective(*election)


def test_a_policy_may_be_given_as_the_file(put: Put, capsys: Capture) -> None:
    policy = put(POLICY)
    assert main(["convert-config", policy]) == ExitCode.OK
    by_name = capsys.readouterr()
    assert main(["convert-config", f"--policy-config-file={policy}"]) == ExitCode.OK
    assert capsys.readouterr().out == by_name.out
    assert (
        "# predicates[0]: GeneralPredicates is NodeResourcesFit, NodeName, NodePorts and NodeAffinity now"
        in by_name.err
    )


def test_a_v1_document_is_printed_as_it_is(put: Put, capsys: Capture) -> None:
    text = f"# mine\n{GROUP}/v1\n{KIND}\nparallelism: 3\n"
    assert main(["convert-config", put(text), "--port=0"]) == ExitCode.OK
    printed = capsys.readouterr()
    assert printed.out == text
    assert printed.err == (
        "# it is v1 already, so nothing changes\n# --port: means nothing beside a configuration file; leave it out\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to convert: name a CONFIG_FILE"),
        (["a", "b"], "one configuration at a time, not 2: a, b"),
        (["--nosuchflag"], "unknown flag: --nosuchflag"),
        (["/nonexistent"], "open /nonexistent: no such file or directory"),
        (["--policy-config-file=/nonexistent"], "open /nonexistent: no such file or directory"),
        (["--algorithm-provider=x"], "--algorithm-provider: there is no algorithm provider 'x'"),
        (["--use-legacy-policy-config"], "required when --use-legacy-policy-config is true"),
        (["--google-json-key=x"], "--google-json-key: credentials of a cloud are no part of the scheduler any more"),
        (["--port=10251"], "the port without TLS is gone"),
    ],
)
def test_what_cannot_be_converted_is_told(arguments: list[str], said: str, capsys: Capture) -> None:
    assert main(["convert-config", *arguments]) != ExitCode.OK
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_what_is_wrong_in_the_result_says_that_it_is_about_the_result(put: Put, capsys: Capture) -> None:
    assert main(["convert-config", put(f"{GROUP}/v1beta3\n{KIND}\nparallelism: 0\n")]) == ExitCode.FAILURE
    said = capsys.readouterr().err
    assert "kubescheduler.config.k8s.io/v1beta3, converted to v1: parallelism: Invalid value: 0" in said


def test_a_start_warns_once_with_the_changes_and_the_text_to_use(put: Put, capsys: Capture, tmp_path: Path) -> None:
    old = put(DOCUMENTS["v1alpha1"])
    assert main([MASTER, f"--config={old}", "--port=0", f"--write-config-to={tmp_path / 'out'}"]) == ExitCode.OK
    said = capsys.readouterr().err
    assert sum(line.startswith("W") for line in said.splitlines()) == 1
    assert "which `trio-sched convert-config` prints" in said
    assert "disablePreemption: now DefaultPreemption, switched off" in said
    assert "schedulerName: mine" in said
    assert 'ignoredFlags="--port"' in said


def test_flags_of_former_versions_mean_nothing_beside_a_file_and_a_v1_file_is_no_reason_to_warn(
    put: Put, capsys: Capture, tmp_path: Path
) -> None:
    config = put(f"{GROUP}/v1\n{KIND}\n")
    flags = [MASTER, f"--config={config}", f"--write-config-to={tmp_path / 'out'}"]
    assert main([*flags, "--algorithm-provider=x", "--policy-config-file=/nonexistent"]) == ExitCode.OK
    said = capsys.readouterr().err
    assert 'flags of former versions mean nothing beside --config; leave them out" ignoredFlags=' in said
    assert "--algorithm-provider, --policy-config-file" in said
    assert main(flags) == ExitCode.OK
    assert not any(line.startswith("W") for line in capsys.readouterr().err.splitlines())


def test_no_help_tells_of_flags_of_former_versions() -> None:
    usage = flags_usage()
    assert not [name for name in LEGACY_NAMES if f"--{name} " in usage]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A server with a policy in a ConfigMap, in a thread with an event loop of its own; its address."""
    manifest = tmp_path / "config_maps.yaml"
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: kube-system}\ndata: {%s: %s}\n"
    good = config_map % ("scheduler-policy", "policy.cfg", json.dumps(POLICY))
    manifest.write_text(f"{good}---\n{config_map % ('empty', 'config', 'x')}")
    server = ApiServer()
    populate(server, load_manifests([manifest]).manifests)
    started: list[str] = []
    scopes: list[tuple[trio.lowlevel.TrioToken, trio.CancelScope]] = []

    async def live() -> None:
        async with trio.open_nursery() as nursery:
            scopes.append((trio.lowlevel.current_trio_token(), nursery.cancel_scope))
            started.append(await nursery.start(partial(serve, server)))
            ready.write(b"!")

    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as waiting, os.fdopen(writing, "wb", buffering=0) as ready:
        thread = Thread(target=trio.run, args=(live,))
        thread.start()
        waiting.read(1)
        yield started[0]
        token, scope = scopes[0]
        trio.from_thread.run_sync(scope.cancel, trio_token=token)
        thread.join()


def test_a_policy_in_a_config_map_is_fetched_before_anything_is_built(cluster: str, put: Put) -> None:
    flags = [f"--master={cluster}", "--write-config-to=x"]
    from_map = prepare(parse_flags([*flags, "--policy-configmap=scheduler-policy"])).effective_yaml()
    from_file = prepare(parse_flags([*flags, f"--policy-config-file={put(POLICY)}"])).effective_yaml()
    assert from_map == from_file
    source = "{policy: {configMap: {namespace: kube-system, name: scheduler-policy}}}"
    config = put(f"{GROUP}/v1alpha1\n{KIND}\nalgorithmSource: {source}\n")
    assert prepare(parse_flags([*flags, f"--config={config}"])).effective_yaml() == from_file


def test_a_file_outdoes_a_config_map_only_if_it_is_told_to(cluster: str, put: Put) -> None:
    other = put('{"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": []}')
    flags = [f"--master={cluster}", "--write-config-to=x", "--policy-configmap=scheduler-policy"]
    both = [*flags, f"--policy-config-file={other}"]
    of_map = prepare(parse_flags(flags)).effective_yaml()
    assert prepare(parse_flags(both)).effective_yaml() == of_map
    assert prepare(parse_flags([*both, "--use-legacy-policy-config"])).effective_yaml() != of_map


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--policy-configmap=nope"], "cannot read the policy in ConfigMap kube-system/nope: .*not found"),
        (
            ["--policy-configmap=scheduler-policy", "--policy-configmap-namespace=default"],
            "cannot read the policy in ConfigMap default/scheduler-policy: .*not found",
        ),
        (
            ["--policy-configmap=empty"],
            "ConfigMap kube-system/empty has no policy: it must be under the key policy.cfg, and there is config",
        ),
    ],
)
def test_a_config_map_without_a_policy_is_told(cluster: str, flags: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        prepare(parse_flags([f"--master={cluster}", *flags]))


def test_a_server_that_does_not_answer_is_told() -> None:
    with pytest.raises(ConfigError, match=r"cannot read the policy in ConfigMap kube-system/a: http://127"):
        prepare(parse_flags([MASTER, "--policy-configmap=a"]))


def test_a_simulation_takes_an_old_configuration_but_has_no_cluster_to_ask_for_its_policy(
    put: Put, small_cluster: Path, capsys: Capture
) -> None:
    simulate = ["simulate", "-f", str(small_cluster), "-o", "json", "--config"]
    assert main([*simulate, put(f"{GROUP}/v1beta1\n{KIND}\n")]) == ExitCode.OK
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["placements"]) == 3
    assert "converted at every start" in printed.err
    source = "{policy: {configMap: {namespace: kube-system, name: scheduler-policy}}}"
    assert main([*simulate, put(f"{GROUP}/v1alpha1\n{KIND}\nalgorithmSource: {source}\n")]) == ExitCode.FAILURE
    assert "cannot be read without its cluster; put it into a file" in capsys.readouterr().err
