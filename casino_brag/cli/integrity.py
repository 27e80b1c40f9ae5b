"""``integrity`` and ``seals``: whether the program is the one that was shipped, and what its keys hold."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from casino_brag.cli.arguments import json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys
from casino_brag.errors import SetUpError
from casino_brag.rounds.house import House
from casino_brag.rounds.integrity import check_integrity
from casino_brag.rounds.seals import renew_commitments, sealed_by_key
from casino_brag.rounds.upkeep import integrity_entry, record


@click.group()
def integrity() -> None:
    """Whether the program and the paytables are those that were shipped and published."""


@integrity.command("verify")
@json_option
@data_dir_option
def verify(as_json: bool, data_dir: Path) -> None:
    """Compare files and published paytables with their digests, and put the result on record.

    Exit code 1 when something differs.
    """
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        house = House.with_keys(seal_keys(data_dir))
        result = check_integrity(conn)
        record(conn, [integrity_entry(conn, result, actor="system:cli")])
        problems = [*result.problems, *([] if house.generator.failure is None else [house.generator.failure])]
    shown = {
        "agrees": not problems,
        "files": result.files,
        "paytables": result.paytables,
        "manifest_digest": result.manifest_digest,
        "problems": problems,
    }
    if as_json:
        click.echo(json.dumps(shown))
    else:
        click.echo(f"manifest   {result.manifest_digest}")
        click.echo(f"compared   {result.files} files, {result.paytables} published paytables")
        for problem in problems:
            click.echo(problem, err=True)
        click.echo("DOES NOT AGREE" if problems else "agrees")
    sys.exit(1 if problems else 0)


@click.group()
def seals() -> None:
    """What is sealed under which key."""


@seals.command()
@json_option
@data_dir_option
def status(as_json: bool, data_dir: Path) -> None:
    """List what is still to be opened, by key: a key that is not listed can be put away."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        rows = sealed_by_key(conn)
    if as_json:
        click.echo(json.dumps([{"sealed": kind, "key_id": key_id, "count": n} for kind, key_id, n in rows]))
        return
    for kind, key_id, count in rows:
        click.echo(f"{key_id:<16} {count:>9} {kind}")


@seals.command()
@data_dir_option
def renew(data_dir: Path) -> None:
    """Replace the commitments that wait under an older key; each is revealed to its player.

    They are replaced one by one as players come back; this does not wait for them.
    """
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        house = House.with_keys(seal_keys(data_dir))
        if house.generator.failure is not None:
            raise SetUpError(f"No random numbers can be had: {house.generator.failure}.")
        renewed = renew_commitments(conn, house)
        house.upkeep.attend(conn, house.generator)
    click.echo(f"{renewed} commitments were replaced.")
