"""Commands whose exit codes 1 and 2 are answers: their errors have a code of their own."""

from typing import IO, Any

import click

from trio_sched.cli.process.exit_code import ExitCode


class NoAnswer(click.ClickException):
    """An error of such a command, in place of any other error of click."""

    exit_code = ExitCode.NO_ANSWER

    def __init__(self, error: click.ClickException) -> None:
        super().__init__(error.message)
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        """Show it as any other."""
        self.error.show(file)


class Answer(click.ClickException):
    """An answer that is given as an error, with a code of its own."""


class AnswerCommand(click.Command):
    """Such a command."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run it.

        Raises:
            NoAnswer: in place of any other error of click.
        """
        try:
            return super().main(*args, **kwargs)
        except click.ClickException as error:
            if isinstance(error, Answer):
                raise
            raise NoAnswer(error) from error


class AnswerGroup(AnswerCommand, click.Group):
    """Several such commands under one name."""
