"""``paytables``: what the games offer, from files and to files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import psycopg

from casino_brag.catalogue.drafts import Draft, DraftState, create_draft, list_drafts, read_draft, save_draft
from casino_brag.catalogue.guards import check_text
from casino_brag.catalogue.paytables import Published, active_number, publish_directory
from casino_brag.catalogue.versions import games_with_paytables, list_versions, version_text
from casino_brag.cli.arguments import ACTOR
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.config import shipped
from casino_brag.db.clock import rfc3339
from casino_brag.errors import ServiceError, SetUpError
from casino_brag.game.paytable_file import PaytableError, read_text
from casino_brag.staff.people import Person, Role, working

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
    """Paytables: their files, drafts and versions."""


@paytables.command()
@paytables_option
@click.option("--reason", help="Why, for the record.")
@click.option("--authoriser", help="Who has allowed it, for the record.")
@data_dir_option
def publish(directory: Path, reason: str | None, authoriser: str | None, data_dir: Path) -> None:
    """Make each file of a directory its game's active version; a game whose file will not do is closed.

    Once somebody of staff is an approver, files change nothing by themselves: see paytables import.
    """
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        published = publish_directory(conn, directory, actor=ACTOR, authoriser=authoriser, reason=reason)
    for found in published:
        if found.version is not None:
            click.echo(
                f"{found.game}: version {found.version}{', in force from now on' if found.changed else ''}"
            )
    sys.exit(0 if report_problems(published, directory) else 1)


@paytables.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--as", "name", required=True, help="Whose draft it is: somebody of staff who is an editor.")
@data_dir_option
def import_file(file: Path, name: str, data_dir: Path) -> None:
    """Make a draft of a paytable file, or save it into the draft of that game which the person has open."""
    try:
        text = read_text(file)
    except PaytableError as error:
        raise SetUpError(str(error)) from error
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        draft = _drafted(conn, _editor(conn, name), file.stem, text)
    click.echo(f"{draft.game}: draft {draft.number}, revision {draft.revision}")
    problems = check_text(draft.game, draft.text).problems
    for key, sentences in problems.items():
        for sentence in sentences:
            click.echo(f"  {key}: {sentence}" if key else f"  {sentence}", err=True)
    if problems:
        click.echo("It is kept, and can be submitted once this is mended.", err=True)


def _editor(conn: psycopg.Connection[Any], name: str) -> Person:
    staff_id, roles = working(conn, name)
    if Role.EDITOR not in roles:
        raise SetUpError(f"{name} is no editor. To change that: staff roles {name} --role editor …")
    return Person(staff_id, name, frozenset(map(Role, roles)))


def _drafted(conn: psycopg.Connection[Any], by: Person, game: str, text: str) -> Draft:
    try:
        own = (
            draft
            for draft in list_drafts(conn, game=game, state=DraftState.DRAFT)
            if draft.created_by == by.name
        )
        if (draft := next(own, None)) is None:
            return create_draft(conn, by, game, text=text)
        return save_draft(conn, by, game, draft.number, text, revision=draft.revision)
    except ServiceError as refused:
        raise _told(refused) from refused


@paytables.command()
@click.argument("game")
@click.option("--version", type=click.IntRange(1), help="This version; else the one that the game offers.")
@click.option("--draft", type=click.IntRange(1), help="This draft.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to; else it is printed."
)
@data_dir_option
def export(game: str, version: int | None, draft: int | None, output: Path | None, data_dir: Path) -> None:
    """Write the file of a version or a draft, with the comments that it was drafted with."""
    if version is not None and draft is not None:
        raise SetUpError("Give a version or a draft, not both.")
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        try:
            if draft is not None:
                text = read_draft(conn, game, draft).text
            else:
                text = version_text(conn, game, version or active_number(conn, game))
        except ServiceError as refused:
            raise _told(refused) from refused
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="")


@paytables.command("list")
@data_dir_option
def list_paytables(data_dir: Path) -> None:
    """Show the versions of every game, newest first, and the drafts that are open."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        for game in games_with_paytables(conn):
            click.echo(game)
            for row in list_versions(conn, game):
                when = "" if row.scheduled_at is None else f" for {rfc3339(row.scheduled_at)}"
                whose = "from a file" if row.approved_by is None else f"approved by {row.approved_by}"
                click.echo(f"  version {row.version:<5}{row.state}{when}   {whose}   {row.digest[:12]}")
            for state in (DraftState.SUBMITTED, DraftState.DRAFT):
                for draft in list_drafts(conn, game=game, state=state):
                    by = ", ".join(draft.editors)
                    click.echo(
                        f"  draft {draft.number:<7}{draft.state}   by {by}   revision {draft.revision}"
                    )


def _told(refused: ServiceError) -> SetUpError:
    sentences = [sentence for told in (refused.errors or {}).values() for sentence in told]
    return SetUpError(" ".join([refused.detail, *sentences]))


def report_problems(published: list[Published], directory: Path) -> bool:
    """Says what closed a game, and which files were left alone, on the error stream; true when neither is so."""
    for found in published:
        if found.problems or found.proposed is not None:
            stands = "is not open" if found.version is None else f"offers version {found.version} as before"
            click.echo(f"{found.game} {stands}:", err=True)
        for problem in found.problems:
            click.echo(f"  {problem}", err=True)
        if found.proposed is not None:
            click.echo(
                f"  Persons approve what games offer here, so {found.proposed} has no effect. To propose it:\n"
                f"  casino-brag paytables import {found.proposed} --as NAME",
                err=True,
            )
    if not any(found.version is not None for found in published):
        click.echo(
            f"No game is open: put paytables that will do into {directory} and publish them.", err=True
        )
    return bool(published) and all(
        found.version is not None and found.proposed is None for found in published
    )
