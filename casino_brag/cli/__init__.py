"""The command ``casino-brag``."""

from __future__ import annotations

import sys
from errno import EDQUOT, ENOSPC
from io import TextIOWrapper

import click

from casino_brag.cli.audit import audit
from casino_brag.cli.database import db, migrate
from casino_brag.cli.games import games
from casino_brag.cli.integrity import integrity, seals
from casino_brag.cli.log_keys import rotate_key
from casino_brag.cli.odds import claims, diff, outcomes, par_sheet, rank
from casino_brag.cli.operators import operator
from casino_brag.cli.paytables import paytables
from casino_brag.cli.reconcile import reconcile_command
from casino_brag.cli.replay import replay
from casino_brag.cli.reports import report
from casino_brag.cli.rng import rng
from casino_brag.cli.rounds import rounds
from casino_brag.cli.rtp import rtp
from casino_brag.cli.sandbox import sandbox_wallet
from casino_brag.cli.serve import serve
from casino_brag.cli.simulation import simulate
from casino_brag.cli.staff import staff
from casino_brag.cli.wallet import wallet
from casino_brag.cli.worker import worker
from casino_brag.errors import SetUpError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="casino-brag")
def commands() -> None:
    """House-banked 3 Card Brag as a service."""


wallet.add_command(reconcile_command)
audit.add_command(replay)
audit.add_command(rotate_key)
for command in (
    *(serve, worker, migrate, paytables, operator, staff, games, rounds, wallet, sandbox_wallet, seals, db),
    *(par_sheet, outcomes, rank, claims, diff, simulate),
    *(audit, rtp, report, rng, integrity),
):
    commands.add_command(command)


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
