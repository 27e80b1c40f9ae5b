"""``paytables``: what the games offer, from files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from casino_brag.catalogue.paytables import Published, publish_directory
from casino_brag.cli.arguments import ACTOR
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.config import shipped

paytables_option = click.option(
    "--paytables",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="CASINO_BRAG_PAYTABLES",
    default=lambda: shipped("paytables"),
    show_default="those of this version",
    help="A directory of paytable files; each is made its game's active version.",
)


@click.group()
def paytables() -> None:
    """Paytable files."""


@paytables.command()
@paytables_option
@click.option("--reason", help="Why, for the record.")
@click.option("--authoriser", help="Who has allowed it, for the record.")
@data_dir_option
def publish(directory: Path, reason: str | None, authoriser: str | None, data_dir: Path) -> None:
    """Make each file of a directory its game's active version; a game whose file will not do is closed."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        published = publish_directory(conn, directory, actor=ACTOR, authoriser=authoriser, reason=reason)
    for found in published:
        if found.version is not None:
            click.echo(
                f"{found.game}: version {found.version}{', in force from now on' if found.changed else ''}"
            )
    sys.exit(0 if report_problems(published, directory) else 1)


def report_problems(published: list[Published], directory: Path) -> bool:
    """Says what closed a game, on the error stream; true when every game is open."""
    for found in published:
        if found.problems:
            click.echo(f"{found.game} is not open:", err=True)
            for problem in found.problems:
                click.echo(f"  {problem}", err=True)
    if not any(found.version is not None for found in published):
        click.echo(
            f"No game is open: put paytables that will do into {directory} and publish them.", err=True
        )
    return bool(published) and all(found.version is not None for found in published)
