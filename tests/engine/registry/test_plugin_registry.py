import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import pytest

from trio_sched.engine.hooks.plugin_errors import (
    AmbiguousPlugin,
    BadPlugin,
    PluginLoadError,
    UnknownPlugin,
    UnreadableDistribution,
)
from trio_sched.engine.registry.plugin_registry import PluginRegistry, hooks_of, points_of
from trio_sched.plugin_api import Handle, Input, NodeColumns, NodeView, Pod, hookimpl


class InstalledPackage(Distribution):
    """An installed distribution."""

    def __init__(self, name: str, version: str = "1.0") -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(path)


class Good:
    name: ClassVar[str] = "Good"

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def score_node(self, pod: Pod, node: NodeView) -> int:
        return 1

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> None:
        pass

    def helper(self) -> None:
        pass


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    module = ModuleType("somebodys_plugins")
    monkeypatch.setitem(sys.modules, "somebodys_plugins", module)
    return module


def offered(name: str, attribute: str, *, by: str = "somebodys-plugins") -> EntryPoint:
    entry_point = EntryPoint(name, f"somebodys_plugins:{attribute}", "trio_sched")
    vars(entry_point)["dist"] = InstalledPackage(by)
    return entry_point


def load_error(package: ModuleType, plugin: object, name: str = "Mine") -> str:
    package.Mine = plugin  # type: ignore[attr-defined]
    with pytest.raises(BadPlugin) as caught:
        PluginRegistry.of([offered(name, "Mine")]).load(name)
    text = str(caught.value)
    start = f"plugin '{name}' from somebodys-plugins 1.0 (somebodys_plugins:Mine): "
    assert text.startswith(start)
    return text.removeprefix(start)


def test_a_plugin_is_imported_when_it_is_first_used(package: ModuleType) -> None:
    registry = PluginRegistry.of([offered("Good", "Good"), offered("Broken", "nothing")])
    assert registry.names == ["Broken", "Good"]
    assert "Good" in registry
    package.Good = Good  # type: ignore[attr-defined]
    assert registry.load("Good") is registry.load("Good") is Good
    assert registry.sources("Good") == ["somebodys-plugins 1.0 (somebodys_plugins:Good)"]
    assert [found.name for found in registry.entry_points("Good")] == ["Good"]
    assert registry.sources("Nobody") == []


def test_built_in_plugins_are_found_through_entry_points() -> None:
    registry = PluginRegistry.discover()
    assert registry.sources("NodeName")[0].startswith("trio-sched ")
    assert registry.load("NodeName").__module__ == "plugins_builtin.node_name"


def test_an_unknown_name_is_reported_with_the_closest_match() -> None:
    registry = PluginRegistry.of([offered("NodeAffinity", "x")])
    with pytest.raises(UnknownPlugin) as caught:
        registry.load("NodeAffinty")
    assert str(caught.value) == (
        "no installed distribution offers a plugin named 'NodeAffinty'; did you mean 'NodeAffinity'? Otherwise "
        "pip install the package that brings it, give its file with --plugin, or remove the name from the "
        "configuration (`trio-sched plugins` lists what is installed)"
    )
    with pytest.raises(UnknownPlugin, match=r"named 'Zebra'; pip install"):
        registry.load("Zebra")


def test_two_distributions_with_one_entry_point_name_are_both_reported() -> None:
    registry = PluginRegistry.of([offered("Mine", "A", by="first"), offered("Mine", "B", by="second")])
    with pytest.raises(AmbiguousPlugin) as caught:
        registry.load("Mine")
    assert str(caught.value) == (
        "plugin 'Mine' is offered by first 1.0 (somebodys_plugins:A) and by second 1.0 (somebodys_plugins:B); "
        "which one is meant cannot be known: uninstall all but one of these distributions"
    )


def test_one_distribution_that_is_found_twice_is_one(package: ModuleType) -> None:
    package.Good = Good  # type: ignore[attr-defined]
    assert PluginRegistry.of([offered("Good", "Good"), offered("Good", "Good")]).load("Good") is Good


def test_a_failing_import_is_a_plugin_error_with_its_cause() -> None:
    entry_point = EntryPoint("Mine", "no_such_module:Mine", "trio_sched")
    with pytest.raises(PluginLoadError) as caught:
        PluginRegistry.of([entry_point]).load("Mine")
    assert str(caught.value) == (
        "plugin 'Mine' from no_such_module:Mine failed to import: ModuleNotFoundError: No module named "
        "'no_such_module'. Fix or uninstall that distribution, or disable 'Mine' in the profile"
    )
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), BaseExceptionGroup("both", [SystemExit(3)])])
def test_an_import_that_ends_the_process_is_a_plugin_error(
    error: BaseException, package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(name: str) -> object:
        raise error

    monkeypatch.setattr(package, "__getattr__", look_up, raising=False)
    with pytest.raises(PluginLoadError, match=type(error).__name__) as caught:
        PluginRegistry.of([offered("Mine", "Mine")]).load("Mine")
    assert caught.value.__cause__ is error


def test_the_error_of_an_import_is_cut(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(name: str) -> object:
        raise ValueError("x" * 1_000_000)

    monkeypatch.setattr(package, "__getattr__", look_up, raising=False)
    with pytest.raises(PluginLoadError) as caught:
        PluginRegistry.of([offered("Mine", "Mine")]).load("Mine")
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize("content", [b"\xff\xfe[trio_sched]\n", b"[trio_sched]\nMine\n"])
def test_entry_points_that_cannot_be_read_are_reported_with_the_place(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "broken-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: broken\nVersion: 1\n")
    (metadata / "entry_points.txt").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnreadableDistribution, match=f"a distribution in {tmp_path} cannot be read: "):
        PluginRegistry.discover()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_a_distribution_without_a_name_is_told_by_its_place(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "nameless-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_bytes(content)
    (metadata / "entry_points.txt").write_text("[trio_sched]\nNameless = no_such_module:Nameless\n")
    monkeypatch.syspath_prepend(tmp_path)
    (source,) = PluginRegistry.discover().sources("Nameless")
    assert source == f"a distribution without a name in {tmp_path} (no_such_module:Nameless)"


def test_a_misspelt_hook_is_reported_with_the_closest_match(package: ModuleType) -> None:
    class Mine(Good):
        name: ClassVar[str] = "Mine"

        @hookimpl
        def prefilter(self, pod: Pod) -> None: ...

    assert load_error(package, Mine) == "there is no hook 'prefilter'; did you mean 'pre_filter'?"


def test_an_unknown_hook_is_reported_with_all_hooks(package: ModuleType) -> None:
    class Mine(Good):
        name: ClassVar[str] = "Mine"

        @hookimpl
        def zzz(self) -> None: ...

    assert load_error(package, Mine).startswith("there is no hook 'zzz'; hooks are pre_enqueue, queue_sort, ")


def test_an_unknown_hook_argument_is_reported_with_the_known_ones(package: ModuleType) -> None:
    class Mine(Good):
        name: ClassVar[str] = "Mine"

        @hookimpl
        def score_node(self, pod: Pod, nodes: NodeColumns) -> int:
            return 0

    assert load_error(package, Mine) == (
        "hook 'score_node' has an argument 'nodes' that is not offered (offered: pod, node, state); "
        "did you mean 'node'?"
    )


@pytest.mark.parametrize("kind", ["*args", "**kwargs", "*, pod"])
def test_hooks_take_plain_arguments(package: ModuleType, kind: str) -> None:
    scope: dict[str, Any] = {"hookimpl": hookimpl}
    exec(f"class Mine:\n  name = 'Mine'\n  @hookimpl\n  def pre_enqueue(self, {kind}): ...", scope)
    assert load_error(package, scope["Mine"]).startswith("hook 'pre_enqueue' must take plain arguments, not ")


def test_a_plugin_has_either_filter_or_filter_node(package: ModuleType) -> None:
    class Mine(Good):
        name: ClassVar[str] = "Mine"

        @hookimpl
        def score(self, pod: Pod, nodes: NodeColumns) -> None: ...

    assert load_error(package, Mine) == "it has both 'score' and 'score_node'; keep one of them"


def test_the_name_of_a_class_equals_that_of_its_entry_point(package: ModuleType) -> None:
    assert load_error(package, Good) == "its class says name = 'Good'; set name = 'Mine', the key of its entry point"
    nameless = type("Nameless", (), {})
    assert load_error(package, nameless) == "its class has no name; set name = 'Mine', the key of its entry point"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("self", "too many positional arguments"),
        ("self, handle", "too many positional arguments"),
        ("self, args, handle, extra", "missing a required argument: 'extra'"),
        ("self, args, *, handle", "too many positional arguments"),
    ],
)
def test_a_constructor_takes_arguments_and_handle(package: ModuleType, arguments: str, problem: str) -> None:
    scope: dict[str, Any] = {"hookimpl": hookimpl}
    code = f"class Mine:\n  name = 'Mine'\n  def __init__({arguments}): ...\n  @hookimpl\n  def pre_enqueue(self): ..."
    exec(code, scope)
    assert load_error(package, scope["Mine"]) == (
        f"its constructor does not take (args, handle): {problem}; write `def __init__(self, args, handle):`"
    )


def test_an_entry_point_names_a_class(package: ModuleType) -> None:
    assert load_error(package, Good(None, None)) == (  # type: ignore[arg-type]
        "the entry point must name a class, but it names a Good"
    )


def test_a_plugin_without_hooks_is_refused(package: ModuleType) -> None:
    class Mine:
        name: ClassVar[str] = "Mine"

        def filter(self) -> None: ...

    assert load_error(package, Mine) == (
        "no method is marked with @hookimpl, so it would never be called; put @hookimpl above filter"
    )


def test_a_class_without_hooks_by_any_name_is_refused(package: ModuleType) -> None:
    class Mine:
        name: ClassVar[str] = "Mine"

    assert load_error(package, Mine) == "no method is marked with @hookimpl, so it would never be called"


@pytest.mark.parametrize("attribute", ["Name", "names", "name_"])
def test_a_class_whose_name_is_misspelt_is_said(package: ModuleType, attribute: str) -> None:
    plugin = type("Mine", (), {attribute: "Mine"})
    assert load_error(package, plugin) == (
        f"its class has no name, but {attribute}; set name = 'Mine', the key of its entry point"
    )


def test_a_class_can_be_added_unless_its_name_is_taken() -> None:
    registry = PluginRegistry.of([])
    registry.add(Good)
    assert "Good" in registry
    assert registry.load("Good") is Good
    with pytest.raises(AmbiguousPlugin, match=r"offered by class .*Good"):
        registry.add(Good)
    with pytest.raises(AmbiguousPlugin, match=r"somebodys-plugins 1.0 \(somebodys_plugins:x\) and by class"):
        PluginRegistry.of([offered("Good", "x")]).add(Good)
    with pytest.raises(UnknownPlugin, match="did you mean 'Good'"):
        registry.load("Goood")


def test_hooks_are_listed_in_call_order_and_points_with_their_names_in_the_configuration() -> None:
    assert hooks_of(Good) == ["pre_enqueue", "score_node"]
    assert points_of(Good) == {"pre_enqueue", "score"}


async def _later(self: Any) -> None: ...


def _piecewise(self: Any) -> Iterator[None]:
    yield


async def _piecewise_later(self: Any) -> Any:
    yield


@pytest.mark.parametrize(
    ("hook", "function", "problem"),
    [
        (
            "filter_node",
            _later,
            "hook 'filter_node' is `async def`, but it has to return at once: write it as plain `def`",
        ),
        ("reserve", _later, "hook 'reserve' is `async def`"),
        ("run", _piecewise, "hook 'run' works in the background, so it must be `async def`"),
        ("score", _piecewise, "hook 'score' is a generator (it has a `yield`), but it has to return a value"),
        ("bind", _piecewise_later, "hook 'bind' is a generator"),
    ],
)
def test_functions_whose_call_is_not_the_answer_are_refused(
    package: ModuleType, hook: str, function: Any, problem: str
) -> None:
    copy = FunctionType(function.__code__, function.__globals__, hook)
    assert load_error(package, type("Mine", (), {"name": "Mine", hook: hookimpl(copy)})).startswith(problem)


class Constructed:
    def __init__(self, args: object, handle: object) -> None: ...


@pytest.mark.parametrize("hook", ["post_filter", "pre_bind", "bind", "post_bind", "run"])
def test_hooks_that_may_take_time_can_be_async(hook: str) -> None:
    copy = FunctionType(_later.__code__, _later.__globals__, hook)
    registry = PluginRegistry.of([])
    registry.add(type("Mine", (Constructed,), {"name": "Mine", hook: hookimpl(copy)}))
    assert "Mine" in registry.names


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        (
            "depends_on",
            Input.NODE,
            "its depends_on must be a tuple or set of members of Input and Domain; it is <Input.NODE",
        ),
        (
            "depends_on",
            {"node"},
            "its depends_on must be a tuple or set of members of Input and Domain; it is {'node'}",
        ),
        (
            "watches",
            "Service",
            "its watches must be a tuple or set of names of kinds, or of CustomResource: ",
        ),
    ],
)
def test_attributes_hold_what_they_must(package: ModuleType, attribute: str, value: Any, problem: str) -> None:
    members = {"name": "Mine", "reserve": hookimpl(FunctionType((lambda self: None).__code__, {}, "reserve"))}
    assert load_error(package, type("Mine", (), {**members, attribute: value})).startswith(problem)
