"""What can be wrong with a plugin, each as one error that names the plugin, where it comes from and the fix.

PluginError
├── UnknownPlugin        no distribution offers that name
├── AmbiguousPlugin      two distributions offer it
├── UnreadableDistribution  the entry points of a distribution cannot be read, so that it is not known what there is
├── PluginNotAllowed     --deny-plugins or --allow-plugins excludes it
├── PluginLoadError      importing it failed
├── IncompatiblePlugin   it needs another version of the plugin API
├── BadPlugin            it is not what a plugin must be: a misspelt hook, a wrong argument, no class
└── PluginArgsError      its ``pluginConfig`` does not fit its ``Args``
"""

from collections.abc import Iterable

from trio_sched import __version__
from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.errors import TrioSchedError
from trio_sched.plugin_api.api_version import API_VERSION


class PluginError(TrioSchedError):
    """A plugin that cannot be used."""


class UnknownPlugin(PluginError):
    """The configuration names a plugin that no installed distribution offers."""

    def __init__(self, plugin: str, suggestion: str | None) -> None:
        super().__init__(plugin, suggestion)
        self.plugin, self.suggestion = plugin, suggestion

    def __str__(self) -> str:
        hint = f"did you mean {self.suggestion!r}? Otherwise " if self.suggestion else ""
        return (
            f"no installed distribution offers a plugin named {self.plugin!r}; {hint}pip install the package that "
            "brings it, give its file with --plugin, or remove the name from the configuration (`trio-sched plugins` "
            "lists what is installed)"
        )


class AmbiguousPlugin(PluginError):
    """Two distributions offer the same name."""

    def __init__(self, plugin: str, sources: Iterable[str]) -> None:
        self.plugin, self.sources = plugin, tuple(sources)
        super().__init__(plugin, self.sources)

    def __str__(self) -> str:
        return (
            f"plugin {self.plugin!r} is offered by {' and by '.join(self.sources)}; "
            "which one is meant cannot be known: uninstall all but one of these distributions"
        )


class UnreadableDistribution(PluginError):
    """The entry points of an installed distribution cannot be read; ``__cause__`` says why."""

    def __init__(self, where: str, cause: BaseException) -> None:
        super().__init__(where)
        self.where, self.cause = where, cause

    def __str__(self) -> str:
        return (
            f"the entry points of a distribution in {self.where} cannot be read: {describe_error(self.cause)}. "
            "Fix or uninstall that distribution"
        )


class PluginNotAllowed(PluginError):
    """The operator has excluded a plugin by a flag."""

    def __init__(self, plugin: str, source: str, rule: str) -> None:
        super().__init__(plugin, source, rule)
        self.plugin, self.source, self.rule = plugin, source, rule

    def __str__(self) -> str:
        return (
            f"plugin {self.plugin!r} from {self.source} is excluded by {self.rule}, so it is not imported; remove the "
            "name from the configuration, or change that flag"
        )


class IncompatiblePlugin(PluginError):
    """A plugin needs a version of the plugin API that this trio-sched does not have."""

    def __init__(self, plugin: str, source: str, required: str) -> None:
        super().__init__(plugin, source, required)
        self.plugin, self.source, self.required = plugin, source, required

    def __str__(self) -> str:
        major, own_major = self.required.partition(".")[0], API_VERSION.partition(".")[0]
        other = f", or a release of the plugin for API {own_major}" if major != own_major else ""
        return (
            f"plugin {self.plugin!r} from {self.source} needs plugin API {self.required}, but this is trio-sched "
            f"{__version__} with plugin API {API_VERSION}: install a trio-sched with plugin API {self.required}{other}"
        )


class PluginLoadError(PluginError):
    """An enabled plugin could not be imported; ``__cause__`` says why."""

    def __init__(self, plugin: str, source: str, cause: BaseException) -> None:
        super().__init__(plugin, source)
        self.plugin, self.source, self.cause = plugin, source, cause

    def __str__(self) -> str:
        module = getattr(self.cause, "name", None) if isinstance(self.cause, ImportError) else None
        is_about_api = isinstance(module, str) and module.split(".")[:2] == ["trio_sched", "plugin_api"]
        hint = f" It may need a newer plugin API than {API_VERSION}, which this trio-sched has." if is_about_api else ""
        return (
            f"plugin {self.plugin!r} from {self.source} failed to import: {describe_error(self.cause)}.{hint} "
            f"Fix or uninstall that distribution, or disable {self.plugin!r} in the profile"
        )


class BadPlugin(PluginError):
    """What was imported does not keep the contract of a plugin."""

    def __init__(self, plugin: str, source: str, problem: str) -> None:
        super().__init__(plugin, source, problem)
        self.plugin, self.source, self.problem = plugin, source, problem

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} from {self.source}: {self.problem}"


class PluginArgsError(PluginError):
    """The arguments in the configuration do not fit the plugin."""

    def __init__(self, plugin: str, problems: Iterable[str]) -> None:
        self.plugin, self.problems = plugin, tuple(problems)
        super().__init__(plugin, self.problems)

    def __str__(self) -> str:
        return f"pluginConfig of {self.plugin!r}: {'; '.join(self.problems)}"
