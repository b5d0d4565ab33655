from typing import Any, ClassVar

from trio_sched.plugin_api import Handle


class PluginBase:
    """Base of the plugins that tests write: named after its class, with a log of its own for each class."""

    name: ClassVar[str]
    log: ClassVar[list[Any]]

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args, self.handle = args, handle

    def __init_subclass__(cls) -> None:
        cls.name, cls.log = cls.__name__, []
