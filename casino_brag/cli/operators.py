"""``operator``: who may sign requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from casino_brag.catalogue.operators import Credentials, add_operator, rotate_key, set_client_seeds
from casino_brag.cli.arguments import json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys
from casino_brag.sealing import Sealer


@click.group()
def operator() -> None:
    """Operators and their keys."""


@operator.command()
@click.argument("name")
@click.option(
    "--origin", "origins", multiple=True, help="A web origin whose pages may call; may be repeated."
)
@click.option("--launch-url", help="The operator's front-end; a session's token is appended to it.")
@json_option
@data_dir_option
def add(name: str, origins: tuple[str, ...], launch_url: str | None, as_json: bool, data_dir: Path) -> None:
    """Add an operator and show its first key."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        made = add_operator(
            conn,
            Sealer(seal_keys(data_dir)),
            name,
            actor="system:cli",
            origins=origins,
            launch_url=launch_url,
        )
    _show(made, as_json)


@operator.command("rotate-key")
@click.argument("name")
@json_option
@data_dir_option
def rotate(name: str, as_json: bool, data_dir: Path) -> None:
    """Give an operator a new key; the newest before it stays live beside it."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        made = rotate_key(conn, Sealer(seal_keys(data_dir)), name, actor="system:cli")
    _show(made, as_json)


@operator.command("client-seeds")
@click.argument("name")
@click.argument("switch", type=click.Choice(["on", "off"]))
@data_dir_option
def client_seeds(name: str, switch: str, data_dir: Path) -> None:
    """Let an operator's players bring a text of their own into their deals, or not."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        changed = set_client_seeds(conn, name, switch == "on", actor="system:cli")
    click.echo(f"Client seeds of {name} are {switch}{'' if changed else ', as before'}.")


def _show(made: Credentials, as_json: bool) -> None:
    shown: dict[str, Any] = {"operator": made.operator, "key_id": made.key_id, "secret": made.secret}
    if as_json:
        click.echo(json.dumps(shown))
        return
    for name, value in shown.items():
        click.echo(f"{name:<9}{value}")
    click.echo("The secret is not shown again.")
