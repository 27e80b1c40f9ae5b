"""``integrity`` and ``seals``: whether the program is the one that was shipped, and what its keys hold."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import click

from casino_brag.cli.arguments import ACTOR, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys
from casino_brag.errors import SetUpError
from casino_brag.rng import Generator, RngUnavailable
from casino_brag.rounds.house import House
from casino_brag.rounds.integrity import check_integrity
from casino_brag.rounds.seals import renew_commitments, sealed_by_key
from casino_brag.rounds.upkeep import integrity_entry, record
from casino_brag.sealing import SealBroken


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
        result = check_integrity(conn)
        record(conn, [integrity_entry(conn, result, actor=ACTOR)])
    module = Generator()
    with suppress(RngUnavailable):  # which then says what failed
        module.start()
    problems = [*result.problems, *([] if module.failure is None else [module.failure])]
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
        click.echo(
            "DOES NOT AGREE: install this version anew; in a checkout, after a change that was meant, make manifest"
            if problems
            else "agrees"
        )
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
        click.echo(f"{key_id:<16} {kind + ':':<20} {count}")


@seals.command()
@click.option(
    "--give-up-lost",
    is_flag=True,
    help="Replace those too that the keys do not open. They are never revealed.",
)
@data_dir_option
def renew(give_up_lost: bool, data_dir: Path) -> None:
    """Replace the commitments that wait under an older key, and reveal each to its player.

    So with those that no round will be dealt from any more: of rules that were replaced, or from before PostgreSQL
    was last started.
    """
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        house = House.with_keys(seal_keys(data_dir))
        if house.generator.failure is not None:
            raise SetUpError(f"No random numbers can be had: {house.generator.failure}.")
        try:
            renewed = renew_commitments(conn, house, give_up_lost=give_up_lost)
        except SealBroken as broken:
            raise SetUpError(
                f"{broken}. Nothing more was replaced. Give CASINO_BRAG_SEAL_KEYS the service's keys, the old ones too;"
                " only if a key is gone for good: --give-up-lost."
            ) from broken
        house.upkeep.attend(conn, house.generator)
    click.echo(f"Replaced commitments: {renewed}")
