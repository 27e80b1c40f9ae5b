"""``operator webhook``: where an operator is told of what happens."""

from __future__ import annotations

import json
from pathlib import Path

import click

from casino_brag.catalogue.webhooks import remove_endpoint, rotate_secret, set_endpoint
from casino_brag.cli.arguments import ACTOR, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys
from casino_brag.sealing import Sealer


@click.command()
@click.argument("name")
@click.argument("url", required=False)
@click.option(
    "--rotate", is_flag=True, help="Give it a new secret; the newest before it stays live beside it."
)
@click.option("--remove", is_flag=True, help="Tell the operator nothing any more.")
@json_option
@data_dir_option
def webhook(name: str, url: str | None, rotate: bool, remove: bool, as_json: bool, data_dir: Path) -> None:
    """Tell an operator of what happens at a URL, and show the secret it is signed with."""
    if sum((url is not None, rotate, remove)) != 1:
        raise click.UsageError("Give one of URL, --rotate and --remove.")
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        if remove:
            remove_endpoint(conn, name, actor=ACTOR)
            click.echo(json.dumps({"operator": name}) if as_json else f"{name} is told nothing any more.")
            return
        sealer = Sealer(seal_keys(data_dir))
        if url is None:
            secret = rotate_secret(conn, sealer, name, actor=ACTOR)
        else:
            secret = set_endpoint(conn, sealer, name, url, actor=ACTOR)
    if as_json:
        click.echo(json.dumps({"operator": name, "secret": secret}))
    else:
        click.echo(f"operator {name}\nsecret   {secret}\nThe secret is not shown again.")
