"""``trio-sched what-if``: what would become of the pods of a cluster if it were changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from attrs import evolve, frozen

from trio_sched.cli.flags.cluster_options import FileName, cluster_of, read_patterns, whole_cluster_options
from trio_sched.cli.options.progress import Progress, shown_progress
from trio_sched.cli.options.simulation_options import (
    described_inputs,
    echo_data,
    one_error,
    set_up_log,
    settings_of,
    simulation_options,
)
from trio_sched.cli.options.version_options import Versions
from trio_sched.cli.plugin_loading.plugin_selection import plugin_options, selection_of
from trio_sched.cli.process import no_answer
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.terminal import answer_console
from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.loaded_plugins import kinds_that_plugins_watch
from trio_sched.simulation.simulated_run import Plan, refuse_extenders, scheduler_names
from trio_sched.simulator import load_manifests
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.kubernetes_versions import NEWEST_MINOR
from trio_sched.what_if.add_actions import AddNodes, AddUntilPlaced
from trio_sched.what_if.answer import Answer
from trio_sched.what_if.apply_action import ApplyManifests
from trio_sched.what_if.asking import Action, ask
from trio_sched.what_if.compact_action import Compact
from trio_sched.what_if.copies_action import CreateCopies
from trio_sched.what_if.fit import fit_answer, fit_in_cluster, pod_template
from trio_sched.what_if.node_actions import Cordon, Drain, Remove
from trio_sched.what_if.repack import repack, repack_answer
from trio_sched.what_if.report import answer_as_page, answer_as_tables
from trio_sched.what_if.state_token import StateChanged, check_unchanged, state_token

F = TypeVar("F", bound=Callable[..., Any])

_MOST_ADDED: Final = 1000
_PATIENCE: Final = 5
_NAMED: Final = 5
"""Nodes that the question names."""


class _Changed(no_answer.Answer):
    """The cluster is not as it was."""

    exit_code = ExitCode.CHANGED


_OPTIONS: Final = (
    click.option(
        "--config",
        type=FileName(path_type=Path),
        help="The KubeSchedulerConfiguration that the cluster's scheduler has; the defaults if not given.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "yaml", "html"]),
        default="table",
        show_default=True,
        help="How to show it.",
    ),
    click.option("--pods", "every_pod", is_flag=True, help="In the table, list every pod instead of every workload."),
    click.option(
        "--if-unchanged",
        "token",
        metavar="TOKEN",
        help="Answer only if the cluster is as it was for the answer with this token; else the exit code is 4.",
    ),
    click.option(
        "-v",
        "--verbosity",
        type=click.IntRange(min=0),
        default=0,
        help="From 1 on, show the scheduler's log on stderr.",
    ),
)


def _question_options(command: F) -> F:
    """Add the options of every question: which cluster, which scheduler, and how to show the answer."""
    command = simulation_options(plugin_options(command))
    for option in reversed(_OPTIONS):
        command = option(command)
    return whole_cluster_options(command)


@frozen(kw_only=True)
class _Asked:
    """A question with what all have in common."""

    plan: Plan
    progress: Progress
    every_pod: bool
    all_rows: bool

    def ask(self, action: Action) -> Answer:
        """What would become of the cluster with *action*."""
        self.progress.begin("pods decided on")
        return ask(self.plan, action, self.progress.count, every_pod=self.every_pod, all_rows=self.all_rows)


def _answer(options: dict[str, Any], find: Callable[[_Asked], Answer]) -> ExitCode:
    """Read the cluster, ask, and show the answer; *find* asks."""
    set_up_log(options.pop("verbosity"))
    config, output = options.pop("config"), options.pop("output")
    gates, seed, policies = options.pop("feature_gates"), options.pop("seed"), options.pop("failure_policies")
    expected, every_pod, for_seconds = options.pop("token"), options.pop("every_pod"), options.pop("for_seconds")
    begins = options.pop("begins") or datetime.now(UTC)
    with one_error():
        cluster = cluster_of(options, current_context=True)
        versions, selection = _versions(options, cluster), selection_of(options)
        cluster = evolve(cluster, kubernetes_version=versions.kubernetes)
        own_flags = [f"--plugin-failure-policy={policies}"] if policies else []
        settings = settings_of(config, gates, selection, [*versions.flags, *own_flags])
        refuse_extenders(settings)
        with shown_progress() as progress:
            watched = kinds_that_plugins_watch([settings]) if cluster.live else ()
            manifests = cluster.load(scheduler_names(settings), begin=progress.begin, watched=watched)
            token = _token(manifests, expected)
            plan = Plan(
                settings=settings,
                manifests=manifests,
                seed=seed,
                kubernetes_version=versions.kubernetes,
                begins=begins,
                for_seconds=for_seconds,
            )
            asked = _Asked(
                plan=plan,
                progress=progress,
                every_pod=every_pod,
                all_rows=output in ("json", "yaml"),
            )
            answer = find(asked)
        inputs = described_inputs(cluster, [str(config or "the defaults")], gates, selection, seed, begins)
    _show(answer, token, output, list(inputs))
    return ExitCode.OK if answer.works else ExitCode.FAILURE


def _versions(options: dict[str, Any], cluster: ClusterFiles) -> Versions:
    given = options.pop("kubernetes_version"), options.pop("emulated_version")
    return Versions.of_options(*given, cluster.live.settings if cluster.live else None)


def _token(manifests: Sequence[Manifest], expected: str | None) -> str:
    """The token of the cluster of *manifests*.

    Raises:
        _Changed: it is not the *expected* one.
    """
    token = state_token(manifests)
    if expected is not None:
        try:
            check_unchanged(expected, token)
        except StateChanged as changed:
            raise _Changed(str(changed)) from changed
    return token


def _show(answer: Answer, token: str, output: str, inputs: list[tuple[str, str]]) -> None:
    if output in ("json", "yaml"):
        echo_data(answer.as_data(token), output)
    elif output == "html":
        click.echo(answer_as_page(answer, inputs, token), nl=False)
    else:
        console = answer_console()
        for part in answer_as_tables(answer):
            console.print(part)


@click.group(cls=no_answer.AnswerGroup, short_help="Say what would become of pods if the cluster were changed.")
def what_if() -> None:
    """Say what would become of the pods of a cluster if it were changed; nothing is written to it.

    The cluster is that of the current context of the kubeconfig, listed with your own rights, unless another context or
    files are given. It is simulated with the real scheduler, kubelets and controllers until it comes to rest, changed,
    and simulated until it comes to rest again.

    The exit code is 0 if it works and no pod loses its place, 1 if not, 3 if something is wrong, and 4 if the cluster
    has changed since the answer of --if-unchanged.
    """


def _node_arguments(command: F) -> F:
    selector = click.option("-l", "--selector", default="", help="The nodes with these labels, as in pool=old,zone!=a.")
    return click.argument("nodes", metavar="[NODE]...", nargs=-1)(selector(command))


def _check_nodes(nodes: tuple[str, ...], selector: str) -> str:
    """What is asked about, in words.

    Raises:
        click.UsageError: nothing is.
    """
    if not nodes and not selector:
        raise click.UsageError("give the names of nodes, or -l SELECTOR")
    return some_names([*nodes, *([selector] if selector else [])], _NAMED)


@what_if.command()
@_node_arguments
@_question_options
def drain(nodes: tuple[str, ...], selector: str, **options: Any) -> ExitCode:
    """Drain nodes: cordon them and evict their pods, in the order that disruption budgets allow."""
    action = Drain(question=f"drain {_check_nodes(nodes, selector)}", names=nodes, selector=selector)
    return _answer(options, lambda asked: asked.ask(action))


@what_if.command()
@_node_arguments
@_question_options
def remove(nodes: tuple[str, ...], selector: str, **options: Any) -> ExitCode:
    """Remove nodes at once, as if their machines were gone; no disruption budget is asked."""
    action = Remove(question=f"remove {_check_nodes(nodes, selector)}", names=nodes, selector=selector)
    return _answer(options, lambda asked: asked.ask(action))


@what_if.command()
@_node_arguments
@_question_options
def cordon(nodes: tuple[str, ...], selector: str, **options: Any) -> ExitCode:
    """Cordon nodes: their pods stay, new ones go elsewhere."""
    action = Cordon(question=f"cordon {_check_nodes(nodes, selector)}", names=nodes, selector=selector)
    return _answer(options, lambda asked: asked.ask(action))


@what_if.command()
@click.option(
    "--like", "likes", metavar="NODE|POOL", multiple=True, help="Nodes like this one, or like those of this pool."
)
@click.option("--count", type=click.IntRange(min=1, max=100_000), help="So many.")
@click.option("--until-placed", is_flag=True, help="As many as it takes until no pod is pending, the cheapest first.")
@click.option(
    "--at-most",
    type=click.IntRange(min=1),
    default=_MOST_ADDED,
    show_default=True,
    help="With --until-placed: no more than so many.",
)
@_question_options
def add(likes: tuple[str, ...], count: int | None, until_placed: bool, at_most: int, **options: Any) -> ExitCode:
    """Add nodes.

    With --until-placed, nodes of the pools of --like (of all if not given) are added one after the other, those with
    the lowest annotation trio-sched.dev/price first, until no pod is pending that a node would help.
    """
    if until_placed == (count is not None):
        raise click.UsageError("give --count or --until-placed" + (", not both" if until_placed else ""))
    action: Action
    if until_placed:
        of = f" of {', '.join(likes)}" if likes else ""
        action = AddUntilPlaced(question=f"add nodes{of} until every pod is placed", pools=likes, most=at_most)
    elif count is not None and len(likes) == 1:
        action = AddNodes(question=f"add {count} like {likes[0]}", like=likes[0], count=count)
    else:
        raise click.UsageError("--count takes one --like NODE|POOL")
    return _answer(options, lambda asked: asked.ask(action))


_MANIFESTS: Final = click.option(
    "-f",
    "--filename",
    "applied",
    metavar="FILE",
    multiple=True,
    required=True,
    type=FileName(path_type=Path),
    help="Manifests in YAML or JSON: a file or a folder. May be repeated.",
)


def _read(files: tuple[Path, ...]) -> list[Manifest]:
    with one_error():
        return load_manifests(list(files), minor=NEWEST_MINOR).manifests  # the server of the question refuses others


@what_if.command()
@_MANIFESTS
@_question_options
def apply(applied: tuple[Path, ...], **options: Any) -> ExitCode:
    """Apply manifests, as kubectl apply --server-side does: what becomes of everybody, preemptions included."""
    manifests = _read(applied)
    action = ApplyManifests(question=f"apply {', '.join(map(str, applied))}", manifests=manifests)
    return _answer(options, lambda asked: asked.ask(action))


@what_if.command()
@_MANIFESTS
@click.option("--count", type=click.IntRange(min=1, max=1_000_000), help="So many copies; as many as fit if not given.")
@click.option("--preemption", is_flag=True, help="Let the copies preempt pods of a lower priority; needs --count.")
@_question_options
def fit(applied: tuple[Path, ...], count: int | None, preemption: bool, **options: Any) -> ExitCode:
    """Say how many copies of a pod, or of the pods of a workload, fit as things stand, and what limits them."""
    if preemption and count is None:
        raise click.UsageError("--preemption needs --count: there is no end to what could be preempted")
    with one_error():
        template = pod_template(_read(applied))
    question = f"fit {f'{count} copies' if count else 'copies'} of {template.what.removeprefix('Pod ')}"

    def find(asked: _Asked) -> Answer:
        if preemption and count is not None:
            return asked.ask(CreateCopies(question=question, template=template, count=count))
        asked.progress.begin("copies placed")
        return fit_answer(question, fit_in_cluster(asked.plan, template, count, asked.progress.count), count)

    return _answer(options, find)


@what_if.command()
@click.option("--pool", "pools", multiple=True, help="Only this pool. May be repeated.")
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    default=_PATIENCE,
    show_default=True,
    help="Leave a pool when so many of its nodes in a row cannot be emptied.",
)
@click.option(
    "--repack",
    "trials",
    type=click.IntRange(min=1, max=1000),
    metavar="TRIALS",
    help="Pack all pods from scratch instead, as if nothing ran yet: so many times, each without other nodes.",
)
@_question_options
def compact(pools: tuple[str, ...], patience: int, trials: int | None, **options: Any) -> ExitCode:
    """Find out how few nodes of each pool hold the pods: those used least are drained one by one while that works.

    With --repack TRIALS, nodes are left out in a random order as long as all pods still find a place when they are
    placed from scratch, once for each trial; the 90th percentile is what a configuration can be judged by.
    """
    if trials is None:
        action = Compact(question="compact", pools=pools, patience=patience)
        return _answer(options, lambda asked: asked.ask(action))
    if pools:
        raise click.UsageError("--repack leaves out nodes of all pools; leave out --pool")
    count: int = trials

    def find(asked: _Asked) -> Answer:
        asked.progress.begin("trials")
        return repack_answer(repack(asked.plan, count, asked.progress.count))

    return _answer(options, find)


@what_if.command()
@click.argument("new", metavar="NEW.yaml", type=FileName(path_type=Path))
@click.option(
    "--reschedule",
    "patterns",
    metavar="all|pending|NAMESPACE/NAME",
    multiple=True,
    default=("all",),
    show_default="all",
    callback=read_patterns,
    help="The pods that both configurations place; the others stay where they are. May be repeated.",
)
@_question_options
def config(new: Path, **options: Any) -> int:
    """Place the pods with another configuration: which of them would be elsewhere, and why.

    It is compare on the cluster of the current context: the first side has the configuration of --config, or the
    defaults, the second one NEW.yaml. Output and exit codes are those of compare.
    """
    from trio_sched.cli.commands.compare import Side, compared

    set_up_log(options.pop("verbosity"))
    sides = Side(config=options.pop("config"), files=()), Side(config=new, files=())
    policies, expected = options.pop("failure_policies"), options.pop("token")
    with one_error():
        cluster = cluster_of(options, current_context=True)
        return compared(
            cluster,
            sides,
            versions=_versions(options, cluster),
            selection=selection_of(options),
            own_flags=[f"--plugin-failure-policy={policies}"] if policies else [],
            feature_gates=options["feature_gates"],
            seed=options["seed"],
            for_seconds=options["for_seconds"],
            begins=options["begins"] or datetime.now(UTC),
            output=options["output"],
            every_pod=options["every_pod"],
            check=partial(_token, expected=expected),
        )
