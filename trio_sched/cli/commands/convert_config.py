"""``trio-sched convert-config``: what former versions read, as the configuration file to use instead."""

from typing import Final

import click

from trio_sched.cli.flags.flags import FlagError, Flags, split_arguments
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.startup.configuration_choice import choose_configuration
from trio_sched.cli.startup.configuration_files import convert_policy_start, read_configuration, read_configuration_file
from trio_sched.cli.startup.configuration_text import ConfigurationText
from trio_sched.config.errors import ConfigError
from trio_sched.config.legacy import is_policy
from trio_sched.go.text import printable_lines

_HELP: Final = """\
Print a configuration of a former version in v1, and tell on stderr what became of what.

CONFIG_FILE is a component configuration (v1alpha1 to v1beta3) or a policy. Instead of it, give the flags of the old
command line: --policy-config-file, --policy-configmap, --algorithm-provider and all that stood beside them.

\b
trio-sched convert-config scheduler.yaml > v1.yaml
trio-sched convert-config --policy-config-file=policy.json --kubeconfig=/etc/kubernetes/scheduler.conf
"""


@click.command(
    "convert-config",
    help=_HELP,
    short_help="Print a configuration of a former version in v1.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[CONFIG_FILE | FLAGS...]")
def convert_config(arguments: tuple[str, ...]) -> ExitCode:
    """Convert what *arguments* name, and print it."""
    try:
        flags, files = split_arguments(arguments)
    except FlagError as error:
        raise click.UsageError(str(error)) from error
    files = tuple(filter(None, (*files, flags.config)))
    if len(files) > 1:
        raise click.UsageError(f"one configuration at a time, not {len(files)}: {', '.join(files)}")
    try:
        source = _convert(flags, files[0]) if files else choose_configuration(flags)
    except ConfigError as error:
        raise error.within(f"{files[0]}: " if files else "") from error
    if source.text is None:
        raise click.UsageError("nothing to convert: name a CONFIG_FILE, or give the flags of the old command line")
    source.load(flags.overrides(), flags.feature_gates())
    for note in source.conversion.notes if source.conversion else ["it is v1 already, so nothing changes"]:
        click.echo(printable_lines(f"# {note}"), err=True)
    for flag in source.ignored:
        click.echo(f"# {flag}: means nothing beside a configuration file; leave it out", err=True)
    click.echo(source.text, nl=False)
    return ExitCode.OK


def _convert(flags: Flags, path: str) -> ConfigurationText:
    text = read_configuration_file(path)
    return convert_policy_start(flags, text) if is_policy(text) else read_configuration(flags, path)
