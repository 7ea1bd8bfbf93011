"""All commands of the program, found as a user finds them."""

from collections.abc import Iterator

import click


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The command, then each command below it, with their words. Groups load their commands on use."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            result = command.get_command(context, name)
            assert result is not None
            yield from commands(result, (*path, name))


def leaves(command: click.Command) -> dict[tuple[str, ...], click.Command]:
    """The commands that are no groups, by their words."""
    return {path: result for path, result in commands(command) if not isinstance(result, click.Group)}
