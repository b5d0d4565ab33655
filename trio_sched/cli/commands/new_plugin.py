"""``trio-sched new-plugin``: writes a package with a plugin that works, to be changed."""

import keyword
import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

import click
from attrs import frozen

from trio_sched import __version__
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.go.text import shortened
from trio_sched.kube_client.files import describe_os_error
from trio_sched.plugin_api.api_version import API_VERSION

_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,31}", re.ASCII)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", re.ASCII)
_TAKEN_MODULES: Final = {"trio_sched", "plugins_builtin", "tests", "attrs", "numpy", "trio"}
_TEMPLATES: Final = {
    "pyproject.toml.template": "pyproject.toml",
    "init.py.template": "src/{module}/__init__.py",
    "plugin.py.template": "src/{module}/plugin.py",
    "test_plugin.py.template": "tests/test_{module}.py",
    "test_conformance.py.template": "tests/test_conformance.py",
    "ci.yaml.template": ".github/workflows/ci.yaml",
    "README.md.template": "README.md",
    "dockerfile.template": "Dockerfile",
    "scheduler.yaml.template": "example/scheduler.yaml",
    "cluster.yaml.template": "example/cluster.yaml",
    "gitignore.template": ".gitignore",
}
"""The files of the package, and from what each is made."""
_HELP: Final = """\
Write a package with a plugin called NAME: code, tests, a workflow for CI, a Dockerfile, and an example to simulate.

Its tests, mypy and ruff pass as it is. NAME is that of a class, and of the plugin in configurations: PreferQuietNodes
for instance. The folder is called like the package, prefer-quiet-nodes, in the current folder or in DIR.
"""


@frozen
class PluginNames:
    """What a plugin is called, and where."""

    name: str
    """The class, the entry point and the plugin in the configuration."""

    @property
    def module(self) -> str:
        """The package that is imported."""
        module = "_".join(word.lower() for word in _WORD.findall(self.name))
        is_taken = module in sys.stdlib_module_names or module in _TAKEN_MODULES or keyword.iskeyword(module)
        return f"{module}_plugin" if is_taken else module

    @property
    def distribution(self) -> str:
        """The package that is installed."""
        return self.module.replace("_", "-")


@click.command("new-plugin", help=_HELP, short_help="Write a package with a plugin that works.")
@click.argument("name", metavar="NAME")
@click.option(
    "--dir", "folder", metavar="DIR", default=".", type=click.Path(path_type=Path), help="Where; it is made if needed."
)
def new_plugin(name: str, folder: Path) -> ExitCode:
    """Write the package, and say what to do next."""
    check_name(name)
    names = PluginNames(name)
    target = folder / names.distribution
    write_package(names, target)
    click.echo(
        f"Wrote {target}. It works as it is:\n\n"
        f"  cd {target}\n"
        "  pip install --editable '.[dev]'\n"
        "  pytest && mypy && ruff check .\n"
        "  trio-sched simulate -f example/cluster.yaml --config example/scheduler.yaml\n\n"
        f"The plugin is in src/{names.module}/plugin.py."
    )
    return ExitCode.OK


def check_name(name: str) -> None:
    """Whether a plugin can be called *name*.

    Raises:
        click.UsageError: it cannot; with a name that can be used.
    """
    shown = shortened(repr(name), 80)
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        rule = "at most 32 letters and digits, a capital first"
        raise click.UsageError(f"{shown} is no name for a class: {rule}; use {usable_name(name)!r}")
    if name in KNOWN_PLUGINS:
        raise click.UsageError(f"{shown} is a plugin of Kubernetes; use {f'My{name}'!r} for instance")
    sources = PluginRegistry.discover().sources(name)
    if sources:
        raise click.UsageError(f"{shown} is installed already, from {sources[0]}; use {f'My{name}'!r} for instance")


def usable_name(name: str) -> str:
    """The name that is nearest to *name* and can be used: ``PreferQuiet`` for ``prefer-quiet`` or ``prefer_quiet``."""
    words = re.findall(r"[A-Za-z0-9]+", name, re.ASCII)
    joined = "".join(word[:1].upper() + word[1:] for word in words).lstrip("0123456789")[:32]
    found = joined[:1].upper() + joined[1:]
    return f"{found}Plugin" if keyword.iskeyword(found) else found or "MyPlugin"


def write_package(names: PluginNames, target: Path) -> None:
    """Write the package of *names* into the folder *target*, which must not exist.

    Raises:
        click.ClickException: it does, or cannot be written; then nothing is left.
    """
    values = {
        "name": names.name,
        "module": names.module,
        "distribution": names.distribution,
        "api": API_VERSION,
        "version": __version__,
    }
    templates = files("trio_sched.cli.commands") / "plugin_template"
    try:
        target.mkdir(parents=True)
    except FileExistsError as error:
        raise click.ClickException(f"{target} exists already; choose another --dir, or remove it") from error
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{target} cannot be made: {describe_os_error(error)}") from error
    try:
        for template, path in _TEMPLATES.items():
            file = target / path.format(module=names.module)
            file.parent.mkdir(parents=True, exist_ok=True)
            text = (templates / template).read_text(encoding="utf-8")
            file.write_text(Template(text).substitute(values), encoding="utf-8")
        (target / "src" / names.module / "py.typed").touch()
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise click.ClickException(f"{target} cannot be written: {describe_os_error(error)}") from error
