"""Checks that any plugin package can run on its own plugins, all at once or each as a test of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from trio_sched.engine.hooks.plugin_errors import PluginArgsError, PluginError
from trio_sched.engine.registry.likely_mistakes import likely_mistakes
from trio_sched.engine.registry.plugin_args import plugin_args, written_args
from trio_sched.errors import TrioSchedError
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing.conformance.answers import answer_problems, subset_problems
from trio_sched.testing.conformance.assumed_pods import assumption_problems
from trio_sched.testing.conformance.blocking import blocking_problems
from trio_sched.testing.conformance.caching import caching_problems
from trio_sched.testing.conformance.clauses import clause_problems
from trio_sched.testing.conformance.dependencies import dependency_problems
from trio_sched.testing.conformance.events import event_problems, registration_problems
from trio_sched.testing.conformance.examples import some_nodes, some_pods, some_running_pods
from trio_sched.testing.conformance.hidden_state import hidden_state_problems
from trio_sched.testing.conformance.hooks import hook_problems
from trio_sched.testing.conformance.mutation import mutation_problems
from trio_sched.testing.conformance.rollback import undone_problems
from trio_sched.testing.conformance.signatures import signature_problems
from trio_sched.testing.conformance.subject import Cluster, Subject, add_pod_group, copy_of
from trio_sched.testing.conformance.unawaited import unawaited_problems
from trio_sched.testing.fake_handle import FakeHandle
from trio_sched.testing.fake_objects import decoded
from trio_sched.testing.given_plugins import Plugin, class_of, is_instance, name_of, registry_with
from trio_sched.testing.hook_limit import HookLimit, HookNeverReturned


class NotConforming(TrioSchedError, AssertionError):
    """A plugin violates rules that the scheduler relies on; *problems* are sentences."""

    def __init__(self, plugin: str, problems: Sequence[str]) -> None:
        self.plugin, self.problems = plugin, tuple(problems)
        super().__init__(plugin, self.problems)

    def __str__(self) -> str:
        promises = "1 promise" if len(self.problems) == 1 else f"{len(self.problems)} promises"
        return f"plugin {self.plugin!r} breaks {promises}:\n  " + "\n  ".join(self.problems)


def _definition_problems(subject: Subject) -> Iterator[str]:
    plugin = class_of(subject.given)
    yield from likely_mistakes(plugin)
    yield from _args_problems(subject.name, plugin, subject.args)


def _args_problems(name: str, plugin: type[Any], given: Any) -> Iterator[str]:
    """What is wrong with the ``Args`` of *plugin*, read from *given*."""
    wanted = getattr(plugin, "Args", None)
    if wanted is None:
        return
    made = plugin_args(name, plugin, given)
    written = written_args(plugin, made)
    try:
        if written_args(plugin, plugin_args(name, plugin, written)) != written:
            yield f"Args {made!r} come back as something else when they are written to a file and read again"
    except PluginArgsError as error:
        yield f"Args that were written to a file cannot be read again: {error}"
    try:
        plugin_args(name, plugin, {"noSuchArgument": 1})
    except PluginArgsError:
        return
    yield "Args take a key that they do not have"


CHECKS: Mapping[str, Callable[[Subject], Iterator[str]]] = {
    "definition": _definition_problems,
    "registrations": registration_problems,
    "blocking": blocking_problems,
    "mutation": mutation_problems,
    "answers": answer_problems,
    "hooks": hook_problems,
    "hidden_state": hidden_state_problems,
    "unawaited": unawaited_problems,
    "undone": undone_problems,
    "assumed_pods": assumption_problems,
    "subsets": subset_problems,
    "dependencies": dependency_problems,
    "signatures": signature_problems,
    "caching": caching_problems,
    "events": event_problems,
    "clauses": clause_problems,
}
"""By name; in an order in which a problem is found first where its text is most precise."""
_COMPARING: Final = ("undone", "assumed_pods", "subsets", "dependencies", "signatures", "caching", "events", "clauses")
"""Checks that ask more than once, and mean nothing if the same question gets different answers."""
_CALLED_ONCE: Final = ("definition", "registrations", "blocking")
"""Checks that call hooks a few times at most; the others take too long for a plugin that blocks."""
_MAX_PER_CHECK: Final = 20
_ABOUT_A_POD: Final = re.compile(r"^pod '[^']*': ")


def check_conformance(
    plugin: Plugin,
    *,
    pods: Iterable[Pod] | None = None,
    nodes: Iterable[Node] | None = None,
    running: Iterable[Pod] | None = None,
    objects: Mapping[str, Iterable[Any]] | None = None,
    args: Any = None,
    handle: FakeHandle | None = None,
    effort: int = 1,
    prepare: Callable[[Any], object] | None = None,
) -> None:
    """Check that *plugin* keeps the contract of the extension points.

    It finds what the scheduler does not notice and what leads to wrong placements: answers that depend on which nodes a
    hook is shown, on the time of day or on former calls; signatures and ``depends_on`` that hide something; objects
    and columns that are written to; hooks that block; and events that are not registered, after which pods would wait
    although the plugin lets them pass. For the latter, clusters are changed at random, always in the same way::

        def test_my_plugin_keeps_the_contract() -> None:
            check_conformance(MyPlugin, pods=[pod("small"), pod("big", cpu="3")])

    Labels, annotations, taints and the like that the plugin may read are taken from its code, its arguments and from
    the objects that are given. ``run`` is not called: what it would fetch, *prepare* gives to the plugin.

    Args:
        plugin: the class; the name of an installed plugin; or an instance that the test has made with *handle*, of
            which the checks are left out that need a new one.
        pods: incoming pods; should include all kinds that the plugin treats differently.
        nodes: nodes; should include all kinds that the plugin treats differently.
        running: pods on these nodes.
        objects: objects by kind that it reads through its handle, typed or as in JSON. They are added, changed and
            deleted; two that differ show in which fields they can.
        args: its ``pluginConfig``.
        handle: what it gets as its handle.
        effort: how many times as many random changes are tried.
        prepare: is called with every instance before its hooks are; for data that ``run`` fetches.

    Raises:
        TypeError: one of *objects* is none of its kind.
        NotConforming: it does not; the error lists all violations, each with its fix.
    """
    problems = list(
        conformance_problems(
            plugin,
            pods=pods,
            nodes=nodes,
            running=running,
            objects=objects,
            args=args,
            handle=handle,
            effort=effort,
            prepare=prepare,
        )
    )
    if problems:
        raise NotConforming(name_of(plugin), problems)


def conformance_test(plugin: Plugin, **given: Any) -> Callable[..., None]:
    """A test for pytest, with one case per check; the arguments are those of `check_conformance`.

    One line in a test module::

        test_conformance = conformance_test(MyPlugin)
    """
    import pytest  # of whoever has tests

    @cache  # what one check has found out serves the next ones
    def subject() -> Subject:
        return _subject_of(_loaded(plugin), **given)

    @pytest.mark.parametrize("check", CHECKS)
    def test_conformance(check: str) -> None:
        try:
            problems = list(_problems(subject(), ["definition", check]))
        except PluginError as error:
            problems = [str(error)]
        if problems:
            raise NotConforming(name_of(plugin), problems)

    return test_conformance


def conformance_problems(
    plugin: Plugin,
    *,
    pods: Iterable[Pod] | None = None,
    nodes: Iterable[Node] | None = None,
    running: Iterable[Pod] | None = None,
    objects: Mapping[str, Iterable[Any]] | None = None,
    args: Any = None,
    handle: FakeHandle | None = None,
    effort: int = 1,
    prepare: Callable[[Any], object] | None = None,
    checks: Iterable[str] = CHECKS,
) -> Iterator[str]:
    """What `check_conformance` finds, each once, and of each check the first few."""
    loaded = _loaded(plugin)
    try:
        subject = _subject_of(
            loaded,
            pods=pods,
            nodes=nodes,
            running=running,
            objects=objects,
            args=args,
            handle=handle,
            effort=effort,
            prepare=prepare,
        )
    except PluginError as error:
        yield str(error)
        return
    yield from _problems(subject, checks)


def _loaded(plugin: Plugin) -> Plugin:
    return registry_with([]).load(plugin) if isinstance(plugin, str) else plugin


def _subject_of(
    plugin: Plugin,
    *,
    pods: Iterable[Pod] | None = None,
    nodes: Iterable[Node] | None = None,
    running: Iterable[Pod] | None = None,
    objects: Mapping[str, Iterable[Any]] | None = None,
    args: Any = None,
    handle: FakeHandle | None = None,
    effort: int = 1,
    prepare: Callable[[Any], object] | None = None,
) -> Subject:
    """See `check_conformance`.

    Raises:
        PluginError: it cannot be made, or its events are wrong.
    """
    waiting = tuple(some_pods() if pods is None else pods)
    shown = FakeHandle() if handle is None else handle if is_instance(plugin) else copy_of(handle)
    for kind, examples in (objects or {}).items():
        shown.known_objects[kind] = [*shown.known_objects.get(kind, ()), *(_typed(kind, one) for one in examples)]
    subject = Subject(
        given=plugin,
        args=args,
        handle=shown,
        pods=waiting,
        cluster=Cluster(
            tuple(some_nodes() if nodes is None else nodes), tuple(some_running_pods() if running is None else running)
        ),
        effort=effort,
        prepare=prepare,
    )
    watched = subject.fresh().watched_kinds
    if not subject.is_instance:  # as in a scheduler, where other kinds cannot be read
        for kind in shown.known_objects.keys() - watched:
            del shown.known_objects[kind]
    add_pod_group(shown, waiting)
    return subject


def _typed(kind: Any, one: Any) -> Any:
    """*one* as the plugin reads it."""
    if not isinstance(one, dict):
        return one
    try:
        return decoded(kind, one)
    except (msgspec.MsgspecError, LookupError) as error:
        raise TypeError(f"objects[{str(kind)!r}]: {one} is no object of this kind: {error}") from error


@lru_cache(maxsize=1)  # each check of a plugin asks again
def _blocking(subject: Subject) -> tuple[str, ...]:
    return _found_by("blocking", subject)


def _found_by(check: str, subject: Subject) -> tuple[str, ...]:
    problems: list[str] = []
    try:
        with HookLimit(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)  # a check of its own
            problems.extend(islice(CHECKS[check](subject), _MAX_PER_CHECK))
    except HookNeverReturned as error:
        problems.append(str(error))
    return tuple(problems)


def _problems(subject: Subject, checks: Iterable[str]) -> Iterator[str]:
    found: set[str] = set()
    wanted = list(dict.fromkeys(checks))
    blocks = any(name not in _CALLED_ONCE for name in wanted) and _blocking(subject)
    is_deterministic = True
    for name in wanted:
        if (blocks and name not in _CALLED_ONCE) or (name in _COMPARING and not is_deterministic):
            continue
        problems = _blocking(subject) if name == "blocking" else _found_by(name, subject)
        is_deterministic &= name != "hidden_state" or not problems
        for problem in problems:
            what = _ABOUT_A_POD.sub("", problem)
            if what not in found:  # several checks can meet one failure, and several pods
                found.add(what)
                yield problem
