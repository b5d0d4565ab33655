"""The cluster that is simulated: from files, a running cluster, or the one for a first try, as options change it."""

import gc
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from attrs import frozen

from trio_sched.errors import TrioSchedError
from trio_sched.go.text import printable
from trio_sched.kube_client.kinds import Kind
from trio_sched.simulation.live.live_cluster import LiveCluster
from trio_sched.simulation.simulated_run import say_on_stderr
from trio_sched.simulator import load_manifests
from trio_sched.simulator.errors.not_simulated import notices
from trio_sched.simulator.manifests.dumps import Rescheduled, pods_of_other_schedulers, reschedule, take_over
from trio_sched.simulator.manifests.manifest_checks import CheckedManifests, check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, read_manifests
from trio_sched.simulator.manifests.missing_objects import missing_objects
from trio_sched.simulator.manifests.replicas import multiply
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_VERSION, minor_version

_SHOWN_WARNINGS: Final = 20
_SHOWN_SCHEDULERS: Final = 20
_SHOWN_FILES: Final = 10


DEMO_CLUSTER: Final = Path(__file__).with_name("demo_cluster.yaml")
"""A web shop's cluster, with more pods than fit and every usual reason why; contrib/scenarios/make_shop.py wrote it."""


_NO_NODES: Final = """\
Note: there are no nodes, so no pod can be placed. Write some into a file and add -f FILE; three of 4 CPUs each are

  {apiVersion: v1, kind: Node, metadata: {name: node, annotations: {trio-sched.dev/count: "3"}},
   status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}}

and those of a running cluster: kubectl get nodes -o yaml"""


class IncompleteDump(TrioSchedError):
    """A dump without the nodes of its pods: nothing can be said of it."""


class DumpedAndChecked(NamedTuple):
    """The objects of files."""

    dumped: list[Manifest]
    """As an API server had them."""
    checked: list[Manifest]
    """Written by somebody, and checked."""


@frozen(kw_only=True)
class ClusterFiles:
    """What to read, and what to change of it."""

    files: tuple[Path, ...] = ()
    live: LiveCluster | None = None
    """A running cluster, to which the files add."""
    demo: bool = False
    """Whether to add the cluster for a first try."""
    kubernetes_version: str = DEFAULT_VERSION
    """The version of the API server that reads the files."""
    lenient: bool = False
    strict: bool = False
    patterns: tuple[str, ...] = ()
    """Patterns for the pods that are to be placed again."""
    taken_over: tuple[str, ...] = ()
    """The schedulers whose pods are scheduled too."""

    @property
    def sources(self) -> list[str]:
        """Where the cluster comes from, in words."""
        live = [f"the cluster at {self.live.settings.server}"] if self.live else []
        files = ["standard input" if str(file) == "-" else str(file) for file in self.files]
        return [*live, *files, *(["the demo"] if self.demo else [])]

    def load(
        self,
        schedulers: Sequence[str],
        say: Callable[[str], None] = say_on_stderr,
        begin: Callable[[str], None] = lambda _what: None,
        watched: Iterable[Kind[Any]] = (),
    ) -> list[Manifest]:
        """Read the cluster.

        Args:
            schedulers: the names of those that are simulated.
            say: takes a line for each thing that is left out or changed.
            begin: is told what is done next.
            watched: the kinds that plugins watch, which are listed of a running cluster.

        Raises:
            TrioSchedError: something is wrong with the files or the running cluster, or the options select nothing.
        """
        sources = [sys.stdin if str(file) == "-" else file for file in self.files]
        if self.demo:
            sources.append(DEMO_CLUSTER)
        with _without_garbage_collection():
            minor = minor_version(self.kubernetes_version)
            listed = self.live.manifests(begin, watched, minor=minor) if self.live else []
            loaded = load_manifests(
                sources,
                listed,
                lenient=self.lenient,
                strict=self.strict,
                begin=begin,
                minor=minor,
            )
        for line in self.live.lacking if self.live else ():
            say(f"Warning: {line}")
        for line in _left_out(loaded):
            say(line)
        if not any(one.fields["kind"] == "Node" for one in loaded.manifests):
            say(_NO_NODES)
        self._say_missing(loaded.manifests, say)
        manifests = multiply(loaded.manifests)
        if self.taken_over:
            take_over(manifests, self.taken_over, schedulers)
        if self.patterns:
            say(_placed_again(reschedule(manifests, self.patterns, schedulers)))
        if others := pods_of_other_schedulers(manifests, schedulers):
            say(_not_simulated(others))
        return manifests

    def load_dumped(self, say: Callable[[str], None], begin: Callable[[str], None]) -> DumpedAndChecked:
        """Read the files, and check only what is from no API server, which has checked what it has stored.

        Args:
            say: takes a line for each thing that is left out.
            begin: is told what is done next.

        Raises:
            TrioSchedError: something is wrong with the files.
        """
        sources = [sys.stdin if str(file) == "-" else file for file in self.files]
        if self.demo:
            sources.append(DEMO_CLUSTER)
        with _without_garbage_collection():
            read = read_manifests(sources, lambda name: begin(f"reading {name}"))
            dumped = [one for one in read.manifests if is_dumped(one.fields)]
            others = [one for one in read.manifests if not is_dumped(one.fields)]
            begin(f"checking {len(others)} objects")
            definitions = [one.fields for one in dumped if one.fields.get("kind") == "CustomResourceDefinition"]
            checked = check_manifests(
                others,
                read.problems,
                lenient=self.lenient,
                strict=self.strict,
                known_definitions=definitions,
                minor=minor_version(self.kubernetes_version),
            )
        checked.files = read.files
        for line in _left_out(checked):
            say(line)
        with suppress(AttributeError, KeyError, TypeError):  # objects that are not of their kind are found out later
            self._say_missing([*dumped, *checked.manifests], say)
        return DumpedAndChecked(dumped, multiply(checked.manifests))

    def _say_missing(self, manifests: Sequence[Manifest], say: Callable[[str], None]) -> None:
        """Say what pods refer to that is nowhere.

        Raises:
            IncompleteDump: the nodes of running pods.
        """
        missing = missing_objects(manifests)
        if missing.running:
            _note_missing(missing.running, manifests, say)
        if missing.pending and self.live is None:  # what was listed is complete, or is named above
            say(f"Warning: pending {_lacking(missing.pending, '; they may be pending for that alone')}")


def is_dumped(fields: dict[str, Any]) -> bool:
    """Whether an object is from an API server, which has checked it."""
    metadata = fields.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("uid"), str) and bool(metadata.get("resourceVersion"))


@contextmanager
def _without_garbage_collection() -> Generator[None, None, None]:
    """What is read has no cycles, and is so much that looking for them takes longer than reading it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()  # else it would look at all of it now
            gc.enable()


def _left_out(loaded: CheckedManifests) -> Iterator[str]:
    """The fields and the objects of *loaded* that are not simulated."""
    for problem in loaded.warnings[:_SHOWN_WARNINGS]:
        yield f"Warning: {problem}"
    if (more := len(loaded.warnings) - _SHOWN_WARNINGS) > 0:
        yield f"Warning: and {more} more"
    if loaded.skipped:
        kinds = ", ".join(f"{count} of {kind}" for kind, count in sorted(loaded.skipped.items()))
        yield f"Left out: {_count(loaded.skipped.total(), 'object')} of kinds that nothing here knows: {kinds}"
    files = loaded.files
    if files.no_manifests:
        yield f"Left out: {_count(len(files.no_manifests), 'file')} without manifests: {_some(files.no_manifests)}"
    if files.charts:
        yield f"Left out: {_count(len(files.charts), 'Helm chart')}: {_some(files.charts)}; helm template renders them"
    if files.kustomized:
        yield f"Note: not applied are kustomizations, which kubectl kustomize renders: {_some(files.kustomized)}"
    for text in notices(str(manifest.fields.get("kind")) for manifest in loaded.manifests):
        yield f"Note: {text}"


def _note_missing(missing: Counter[str], manifests: Sequence[Manifest], say: Callable[[str], None]) -> None:
    """Say what a dump lacks of running pods.

    Raises:
        IncompleteDump: it lacks all nodes.
    """
    text = f"running {_lacking(missing)}"
    if not any(one.built_in_kind == "Node" for one in manifests):
        raise IncompleteDump(text)
    say(f"Warning: {text}")


def _lacking(missing: Counter[str], effect: str = "") -> str:
    listed = ", ".join(f"{count} {resource}" for resource, count in sorted(missing.items()))
    command = f"kubectl get -A -o json {','.join(sorted(missing))}"
    return f"pods refer to what is in none of the files: {listed}{effect}; add what `{command}` prints"


def _placed_again(done: Rescheduled) -> str:
    stayed = ", ".join(f"{count} {why}" for why, count in sorted(done.stayed.items()))
    text = f"Placed again: {_count(done.moved, 'pod')}"
    return f"{text}; on their nodes stay: {stayed}" if stayed else text


def _not_simulated(others: Counter[str]) -> str:
    """The pods without a node that no scheduler of the simulation places."""
    named = [f"{_count(count, 'pod')} of {name}" for name, count in others.most_common(_SHOWN_SCHEDULERS)]
    more = len(others) - len(named)
    text = ", ".join([*named, f"and of {more} more"] if more else named)
    return f"Not simulated: {text}; --as-scheduler NAME schedules them, too"


def _some(names: Sequence[str]) -> str:
    shown = [printable(name) for name in names[:_SHOWN_FILES]]
    more = len(names) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
