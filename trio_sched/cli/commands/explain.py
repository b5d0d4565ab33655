"""``trio-sched explain``, which is ``kubectl why`` too: why a pod is pending, or where it is, and what would help."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import trio
from attrs import evolve

from trio_sched.cli.flags.cluster_options import FileName, cluster_of, source_options
from trio_sched.cli.live.running_scheduler import explain_there, hint_about_trust, scheduler_connection
from trio_sched.cli.options.progress import Progress, shown_progress
from trio_sched.cli.options.simulation_options import echo_data, one_error, set_up_log, settings_of
from trio_sched.cli.options.version_options import Versions, version_options
from trio_sched.cli.plugin_loading.plugin_selection import plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.no_answer import Answer, AnswerCommand
from trio_sched.daemon.assembly import Assembly
from trio_sched.errors import first_leaf
from trio_sched.explanation.text import Layout, explanation_text, plain
from trio_sched.go.text import printable
from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulation.asked_pods import Name, NoSuchPod
from trio_sched.simulation.explaining import Answers, Question, explain_live, explain_manifests, explain_settled
from trio_sched.simulation.simulated_run import Plan, run_plan, say_on_stderr
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import ObjectStore

_STYLES: Final[dict[str, dict[str, Any]]] = {
    "title": {"bold": True},
    "cause": {"fg": "yellow", "bold": True},
    "good": {"fg": "green"},
}
_WIDEST: Final = 140
_UNBROKEN: Final = 10_000
"""Columns of what is no terminal: there each sentence is one line, so the first three lines have the whole cause."""
_SHOWN_ALIKE: Final = 5
_FITS: Final = "none any more: they fit a node now"


class _NotFound(Answer):
    """There is no such pod."""

    exit_code = 2


@click.command(cls=AnswerCommand, short_help="Say why a pod is pending, and what would change that.")
@click.argument("pods", metavar="[POD|KIND/NAME|NAMESPACE/NAME]...", nargs=-1)
@click.option(
    "-n",
    "--namespace",
    default="",
    help="The namespace of the pods. If not given, that of the context; with --all-pending, all.",
)
@click.option("-A", "--all-pending", is_flag=True, help="Explain all pending pods, those that are alike together.")
@click.option("--node", "nodes", metavar="NODE", multiple=True, help="Say why it is not on this node. May be repeated.")
@click.option("--nodes", "every_node", is_flag=True, help="Name every node, not a few of each group.")
@source_options
@click.option(
    "--config",
    type=FileName(path_type=Path),
    help="The KubeSchedulerConfiguration that the cluster's scheduler has; the defaults if not given.",
)
@click.option("--feature-gates", default="", help="Features to switch: Gate=true|false,...")
@version_options
@click.option(
    "--from",
    "scheduler_url",
    metavar="URL",
    help="Ask the trio-sched at https://HOST:PORT: it explains with its own configuration, plugins and history.",
)
@click.option(
    "--from-ca",
    type=FileName(path_type=Path),
    help="The certificate authorities of that trio-sched; those of the system if not given.",
)
@click.option("--from-insecure", is_flag=True, help="Do not check its certificate; it is sent your credentials.")
@plugin_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="How to show it.",
)
def explain(
    pods: tuple[str, ...],
    namespace: str,
    all_pending: bool,
    nodes: tuple[str, ...],
    every_node: bool,
    config: Path | None,
    feature_gates: str,
    kubernetes_version: str | None,
    emulated_version: str,
    scheduler_url: str | None,
    from_ca: Path | None,
    from_insecure: bool,
    output: str,
    **options: Any,
) -> ExitCode:
    """Say why pods are pending, or where they are, and which changes would let them run.

    POD is the name of a pod; deployment/web, or deployment web, and the like stand for the pods of a workload,
    podgroup/x for those of a group. The cluster is that of the current context of the kubeconfig, unless files or
    another context are given; it is listed with your own rights, and nothing is written to it. Every change that is
    shown was made on a copy of the cluster, where the scheduler's own code then placed the pod.

    The exit code is 0 if all of them run or would run now, 1 if one is pending for a cause, 2 if there is no such pod,
    and 3 if something is wrong.
    """
    if all_pending == bool(pods):
        raise click.UsageError("give the names of pods, or --all-pending" + (", not both" if pods else ""))
    set_up_log(0)
    with one_error():
        context = _context(options)
        cluster = cluster_of(options, current_context=True)
        live = cluster.live
        if live is not None and (cluster.files or cluster.demo):
            raise click.UsageError("files and --kubeconfig or --context name two clusters; give one of them")
        default = namespace or (live.settings.namespace if live is not None else "") or "default"
        asked = None if scheduler_url is not None or live is None else live.settings
        versions = Versions.of_options(kubernetes_version, emulated_version, asked)
        question = Question(
            settings=settings_of(config, feature_gates, selection_of(options), versions.flags),
            kubernetes_version=versions.kubernetes,
            names=_names(pods, default),
            namespace=namespace,
            nodes=nodes,
            context=context,
            is_default=config is None,
        )
        there = None
        if scheduler_url is not None:
            is_by_name = bool(pods) and all(name.kind == "Pod" for name in question.names)
            if live is None or config is not None or feature_gates or versions.flags or not is_by_name:
                raise click.UsageError(
                    "--from takes names of pods, and neither files nor --config nor --feature-gates nor versions"
                )
            there = scheduler_connection(scheduler_url, live.settings, ca_file=from_ca, insecure=from_insecure)
        elif from_ca is not None or from_insecure:
            raise click.UsageError("--from-ca and --from-insecure are about the trio-sched of --from")
        now = datetime.now(UTC)
        try:
            with shown_progress() as progress:
                if there is not None:
                    progress.begin(f"asking {there.server}")
                    with hint_about_trust():
                        answers = trio.run(explain_there, there, question.names, nodes)
                elif live is not None:
                    answers = trio.run(explain_live, question, live.settings, now, progress.begin)
                else:
                    cluster = evolve(cluster, kubernetes_version=versions.kubernetes)
                    manifests = cluster.load_dumped(say_on_stderr, progress.begin)
                    if any(one.fields.get("kind") == "Pod" for one in manifests.dumped):
                        answers = trio.run(explain_manifests, question, manifests, now, say_on_stderr)
                    else:  # manifests of pods that no scheduler has seen yet
                        answers = _simulated(question, [*manifests.dumped, *manifests.checked], now, progress)
        except* NoSuchPod as group:
            text = str(first_leaf(group))
            raise _NotFound(f"{text} (--nodes takes no name; --node does)" if every_node else text) from None
    _show(answers, output, every_node=every_node, listed=all_pending)
    return ExitCode.FAILURE if answers.is_pending else ExitCode.OK


def _simulated(question: Question, manifests: Sequence[Manifest], now: datetime, progress: Progress) -> Answers:
    """The answers once the cluster has been scheduled."""
    answers: list[Answers] = []

    async def inspect(store: ObjectStore, assembly: Assembly, then: datetime) -> None:
        answers.append(await explain_settled(question, store, assembly, then))

    progress.begin("pods decided on")
    plan = Plan(
        settings=question.settings,
        manifests=manifests,
        seed=0,
        begins=now,
        kubernetes_version=question.kubernetes_version,
        inspect=inspect,
    )
    run_plan(plan, progress.count)
    answers[0].notes.append("the files have pods that no cluster has seen; what becomes of them was simulated first")
    return answers[0]


def _names(words: Sequence[str], namespace: str) -> list[Name]:
    """What is asked about: names, possibly with their kinds, or as in kubectl a kind and then names."""
    if len(words) > 1 and "/" not in words[0] and _is_kind(words[0]):
        words = [f"{words[0]}/{word}" for word in words[1:]]
    return [Name.read(word, namespace) for word in words]


def _is_kind(word: str) -> bool:
    return not Name.read(f"{word}/name", "").namespace  # else it is read as one


def _context(options: dict[str, Any]) -> Sequence[str]:
    """The flags with which kubectl reaches the same cluster."""
    found = []
    for name in ("kubeconfig", "context"):
        if options.get(name):
            found.append(f"--{name}={options[name]}")
    return found


def _show(answers: Answers, output: str, *, every_node: bool, listed: bool) -> None:
    if output != "text":
        echo_data(answers.as_data(), output)
        return
    is_terminal = sys.stdout.isatty()
    width = min(shutil.get_terminal_size().columns, _WIDEST) if is_terminal else _UNBROKEN
    style = _styled if is_terminal and not os.environ.get("NO_COLOR") else plain
    layout = Layout(width=width, every_node=every_node, style=style)
    if listed:
        _echo_lines(_summary(answers, layout))
    for number, answer in enumerate(answers.answers):
        if number or listed:
            click.echo()
        click.echo(explanation_text(answer.explanation, layout), nl=False)
        if len(answer.pods) > 1:
            others = [key for key in answer.pods if key != answer.explanation["pod"]]
            click.echo()
            _echo_lines(layout.wrapped(f"The same holds for {some_names(others, _SHOWN_ALIKE)}"))
    if answers.notes:
        click.echo()
    for note in answers.notes:
        _echo_lines(layout.wrapped(f"Note: {note}"))


def _echo_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _summary(answers: Answers, layout: Layout) -> Iterator[str]:
    """The causes of all pods, the most frequent first."""
    counts: Counter[str] = Counter()
    for one in answers.answers:
        cause = one.explanation["cause"]
        title = _FITS if cause["fitsNow"] else ", ".join(cause["clauses"]) or cause["text"]
        counts[title] += len(one.pods)
    if not counts:
        yield "No pod is pending."
        return
    total = counts.total()
    yield f"{total} pods are pending." if total > 1 else "1 pod is pending."
    yield from ("", " PODS  CAUSE")
    for title, pods in counts.most_common():
        yield from layout.wrapped(printable(title), first=f" {pods:>4}  ", rest="       ")


def _styled(name: str, text: str) -> str:
    return click.style(text, **_STYLES[name])
