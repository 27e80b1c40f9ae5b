"""Every command and group of the program, by the words that call it."""

from __future__ import annotations

import click

from casino_brag.cli import commands


def _below(root: click.Command, *names: str) -> dict[tuple[str, ...], click.Command]:
    found = {names: root}
    if isinstance(root, click.Group):
        context = click.Context(root)
        for name in root.list_commands(context):
            child = root.get_command(context, name)
            assert child is not None
            found |= _below(child, *names, name)
    return found


COMMANDS = _below(commands)
