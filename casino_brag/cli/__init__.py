"""The command ``casino-brag``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from errno import EDQUOT, ENOSPC
from importlib import import_module
from io import TextIOWrapper
from typing import Final

import click

from casino_brag.errors import SetUpError

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "audit": ("audit",),
    "database": ("db", "migrate"),
    "games": ("games",),
    "integrity": ("integrity", "seals"),
    "odds": ("claims", "diff", "outcomes", "par-sheet", "rank"),
    "operators": ("operator",),
    "paytables": ("paytables",),
    "reports": ("report",),
    "rng": ("rng",),
    "rounds": ("rounds",),
    "rtp": ("rtp",),
    "sandbox": ("sandbox-wallet",),
    "serve": ("serve",),
    "simulation": ("simulate",),
    "staff": ("staff",),
    "wallet": ("wallet",),
    "worker": ("worker",),
}
"""The commands of each module, whose names there have ``_`` for ``-``."""


class _Commands(click.Group):
    """Imports a command when it is asked for, since few need the libraries that all need together."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for names in _MODULES.values() for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for module, names in _MODULES.items():
            if cmd_name in names:
                found = import_module(f"casino_brag.cli.{module}")
                command: click.Command = getattr(found, cmd_name.replace("-", "_"))
                return command
        return None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="casino-brag")
def commands() -> None:
    """House-banked 3 Card Brag as a service."""


def main() -> None:
    """Runs a command; what stops it is told in one sentence, and the exit code is 1, or 2 where the disk is full."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # pages say that they are, and Latin-1 lacks their signs
    try:
        commands()
    except SetUpError as error:
        click.echo(f"casino-brag: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT):
            raise
        click.echo(f"casino-brag: {error.strerror}: make room and try again", err=True)
        sys.exit(2)
