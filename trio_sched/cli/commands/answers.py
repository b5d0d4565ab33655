"""Commands whose exit codes are answers, so that an error has a code of its own."""

from typing import IO, Any

import click

from trio_sched.cli.process.exit_code import ExitCode


class NoAnswer(click.ClickException):
    """An error of a command for which 1 and 2 are answers."""

    exit_code = ExitCode.NO_ANSWER

    def __init__(self, error: click.ClickException) -> None:
        super().__init__(error.message)
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        """Show it as any other."""
        self.error.show(file)


class AnsweringCommand(click.Command):
    """A command that fails with `ExitCode.NO_ANSWER`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run it.

        Raises:
            NoAnswer: in place of any other error of click.
        """
        try:
            return super().main(*args, **kwargs)
        except click.ClickException as error:
            raise NoAnswer(error) from error
