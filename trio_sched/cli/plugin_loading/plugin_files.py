"""Plugins in single files, for developing: no package, no entry point, the class is found in the module."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import io
import linecache
import os
import stat
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.cli.plugin_loading.time_limit import time_limit
from trio_sched.documents.files import read_bytes
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.engine.hooks.plugin_errors import PluginError
from trio_sched.engine.registry.plugin_registry import PluginClass, check_contract, hooks_of
from trio_sched.go.text import shortened
from trio_sched.interrupts import raise_interrupt
from trio_sched.kube_client.files import describe_os_error

MAX_FILES: Final = 1000
"""A folder with more files than this is refused: it is hardly one of plugins."""
IMPORT_SECONDS: Final = 30.0
"""How long importing a file may take; nothing else happens meanwhile."""
_MAX_BYTES: Final = 4 << 20
_PREFIX: Final = "trio_sched_plugin_file"
_HELPER: Final = "__trio_sched_plugin_helper__"
"""Set in modules that were imported from beside a plugin: whenever that is imported again, they are, too."""


class PluginFileError(PluginError):
    """A file with a plugin cannot be used; the text names the file and the line."""

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path, self.line, self.problem = path, line, problem
        self.plugin = Path(path).stem

    def __str__(self) -> str:
        return f"{self.path}{'' if self.line is None else f', line {self.line}'}: {self.problem}"


@frozen(eq=False)
class FilePlugin:
    """A plugin that was found in a file."""

    plugin: PluginClass
    path: str
    line: int

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.plugin.name
        return name

    @property
    def source(self) -> str:
        """Where it comes from, as errors and the log say it."""
        return f"{self.path}, line {self.line}"


@define(eq=False)
class FoundPlugins:
    """The plugins of some files, and what was wrong with others."""

    plugins: list[FilePlugin] = field(factory=list)
    errors: list[PluginFileError] = field(factory=list)


def plugin_files_in(folder: str, *, with_helpers: bool = False) -> list[str]:
    """The files of *folder* that may define plugins, and perhaps their helpers, in the order of their names.

    Raises:
        PluginFileError: it cannot be listed, or has too many.
    """
    try:
        hidden = "." if with_helpers else "._"
        names = [name for name in os.listdir(folder) if name.endswith(".py") and name[0] not in hidden]
    except (OSError, ValueError) as error:
        raise PluginFileError(folder, None, f"cannot be listed: {describe_os_error(error)}") from error
    if len(names) > MAX_FILES:
        raise PluginFileError(
            folder, None, f"has {len(names)} Python files, and {MAX_FILES} are the most; is it the right folder?"
        )
    return [os.path.join(folder, name) for name in sorted(names)]


def load_plugin_files(files: Sequence[str], folders: Sequence[str]) -> FoundPlugins:
    """Import *files*, which must define plugins, and those of *folders*, which may; everything is imported again."""
    found = FoundPlugins()
    listed: dict[str, bool] = {}
    for folder in folders:
        try:
            listed |= dict.fromkeys(plugin_files_in(folder), False)
        except PluginFileError as error:
            found.errors.append(error)
    listed |= dict.fromkeys(files, True)
    homes = [os.path.abspath(folder) for folder in folders] + [os.path.dirname(os.path.abspath(file)) for file in files]
    with _helpers_of(homes):
        for path, must_define in listed.items():
            try:
                found.plugins += _load(path, must_define=must_define)
            except PluginFileError as error:
                found.errors.append(error)
    by_name: dict[str, FilePlugin] = {}
    for plugin in found.plugins:
        first = by_name.setdefault(plugin.name, plugin)
        if first is not plugin:
            problem = f"plugin {plugin.name!r} is defined in {first.source} too; give one of them another name"
            found.errors.append(PluginFileError(plugin.path, plugin.line, problem))
    found.plugins = list(by_name.values())
    return found


@contextlib.contextmanager
def _helpers_of(homes: list[str]) -> Iterator[None]:
    """While plugins are imported, modules beside them can be imported as in a script, in their present state."""
    for name, module in list(sys.modules.items()):
        if getattr(module, _HELPER, False) is True:
            del sys.modules[name]
    before = set(sys.modules)
    importlib.invalidate_caches()
    added = [home for home in dict.fromkeys(homes) if home not in sys.path]
    sys.path += added  # last: a file beside a plugin hides no package
    # Bytecode of helpers is told from their source by whole seconds: what is saved twice in one would be missed.
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = wrote
        for name in set(sys.modules) - before:
            module = sys.modules[name]
            file = getattr(module, "__file__", None)
            is_plugin = name.startswith(_PREFIX)
            if not is_plugin and isinstance(file, str) and os.path.dirname(file) in homes:
                with contextlib.suppress(Exception):  # anything can be put there
                    setattr(module, _HELPER, True)


def _load(path: str, *, must_define: bool) -> list[FilePlugin]:
    source = _read(path)
    try:
        text = importlib.util.decode_source(source)
        tree = ast.parse(text, path)
        code = compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise PluginFileError(path, error.lineno, f"SyntaxError: {error.msg}") from error
    except UnicodeDecodeError as error:
        line = source[: error.start].count(b"\n") + 1
        problem = f"byte 0x{source[error.start]:02x} is not UTF-8; is this a Python file?"
        raise PluginFileError(path, line, problem) from error
    except (LookupError, ValueError, RecursionError, MemoryError) as error:  # no codec, a NUL byte, 10,000 brackets
        raise PluginFileError(path, None, describe_error(error)) from error
    lines = {node.name: node.lineno for node in tree.body if isinstance(node, ast.ClassDef)}
    module = _execute(path, code)
    found = []
    for name, value in list(vars(module).items()):
        line = lines.get(name, 1)
        try:
            if _is_plugin_class(path, line, module, name, value, must_define=must_define):
                found.append(FilePlugin(value, path, line))
        except PluginFileError:
            raise
        except BaseException as error:  # a metaclass, an attribute or a signature may raise anything
            raise_interrupt(error)
            raise PluginFileError(path, line, f"{name} cannot be looked at: {describe_error(error)}") from error
    if must_define and not found:
        raise PluginFileError(
            path, None, "it defines no plugin: no class with a name and methods marked with @hookimpl"
        )
    return found


def _is_plugin_class(path: str, line: int, module: ModuleType, name: str, value: Any, *, must_define: bool) -> bool:
    """Whether *value*, which is called *name* in *module*, is a plugin of it.

    Raises:
        PluginFileError: it is one that breaks the contract.
    """
    if not isinstance(value, type) or value.__module__ != module.__name__ or value.__name__ != name:
        return False
    if isinstance(vars(value).get("name"), str) and (hooks_of(value) or must_define):
        _check(path, line, value)
        return True
    if hooks_of(value) and not hasattr(value, "name"):
        raise PluginFileError(path, line, f"class {name} has hooks, but no name; set name = {name!r}")
    return False


def _read(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise PluginFileError(path, None, "is no regular file")
        return read_bytes(path, max_bytes=_MAX_BYTES, pipe_wait_seconds=0.0)
    except (OSError, ValueError) as error:
        raise PluginFileError(path, None, f"cannot be read: {describe_os_error(error)}") from error


def _execute(path: str, code: Any) -> ModuleType:
    """The module that *code* makes; the former one stays in ``sys.modules`` if it fails.

    Raises:
        PluginFileError: it raises something, SystemExit included.
    """
    absolute = os.path.abspath(path)
    name = f"{_PREFIX}_{hashlib.sha256(os.fsencode(absolute)).hexdigest()[:12]}_{Path(path).stem}"
    module, former = ModuleType(name), sys.modules.get(name)
    module.__file__ = absolute
    sys.modules[name] = module
    linecache.checkcache(path)
    try:
        # What it prints is talk: the output of a command is for its answer.
        with contextlib.redirect_stdout(sys.stderr or io.StringIO()), time_limit(IMPORT_SECONDS):
            exec(code, module.__dict__)
    except BaseException as error:
        sys.modules.pop(name, None)
        if former is not None:
            sys.modules[name] = former
        raise_interrupt(error)
        raise PluginFileError(path, _line_of(error, path), f"importing it failed: {describe_error(error)}") from error
    return module


def _line_of(error: BaseException, path: str) -> int | None:
    """The last line of the file *path* that was passed on the way to *error*."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


def _check(path: str, line: int, plugin: PluginClass) -> None:
    """Check the contract.

    Raises:
        PluginFileError: it is broken.
    """
    name, source = plugin.name, f"{path}, line {line}"
    try:
        check_contract(name, source, plugin)
    except PluginError as error:
        problem = str(error).removeprefix(f"plugin {name!r} from {source}").lstrip(": ")
        raise PluginFileError(path, line, f"plugin {shortened(repr(name))}: {problem}") from error
