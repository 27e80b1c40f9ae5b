"""``operator``: who may sign requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from casino_brag.catalogue.operators import (
    Credentials,
    Funding,
    InterruptionPolicy,
    add_operator,
    rotate_key,
    set_client_seeds,
    set_interruption,
    set_wallet,
)
from casino_brag.cli.arguments import ACTOR, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys
from casino_brag.cli.webhooks import webhook
from casino_brag.sealing import Sealer

funding_option = click.option(
    "--funding",
    type=click.Choice([funding.value for funding in Funding]),
    show_default="as before, at first two_debits",
    help="When the operator's wallet is debited for the Play wager: when it is played, or with the deal.",
)


@click.group()
def operator() -> None:
    """Operators, their keys, wallets and rules."""


operator.add_command(webhook)


@operator.command()
@click.argument("name")
@click.option(
    "--origin", "origins", multiple=True, help="A web origin whose pages may call; may be repeated."
)
@click.option("--launch-url", help="The operator's front-end; a session's token is appended to it.")
@click.option(
    "--wallet", "wallet_url", help="The operator's own wallet; without one it uses the built-in one."
)
@funding_option
@json_option
@data_dir_option
def add(
    name: str,
    origins: tuple[str, ...],
    launch_url: str | None,
    wallet_url: str | None,
    funding: str | None,
    as_json: bool,
    data_dir: Path,
) -> None:
    """Add an operator and show its first key."""
    if funding is not None and wallet_url is None:
        raise click.UsageError("--funding is about an operator's own wallet: give --wallet too.")
    with database(data_dir) as addresses, migrated_connection(addresses) as conn, conn.transaction():
        made = add_operator(
            conn,
            Sealer(seal_keys(data_dir)),
            name,
            actor=ACTOR,
            origins=origins,
            launch_url=launch_url,
        )
        if wallet_url is not None:
            set_wallet(conn, name, wallet_url, _funding(funding), actor=ACTOR)
    _show(made, as_json)


@operator.command()
@click.argument("name")
@click.argument("url")
@funding_option
@data_dir_option
def wallet(name: str, url: str, funding: str | None, data_dir: Path) -> None:
    """Say where an operator's own wallet is, and when it is debited for the Play wager."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        funded = set_wallet(conn, name, url, _funding(funding), actor=ACTOR)
    click.echo(f"The wallet of {name} is {url}, funding by {funded.value}.")


@operator.command()
@click.argument("name")
@click.argument("hours", type=click.IntRange(1, 17520))
@click.argument("policy", type=click.Choice([policy.value for policy in InterruptionPolicy]))
@data_dir_option
def interruption(name: str, hours: int, policy: str, data_dir: Path) -> None:
    """Say how many hours an operator's interrupted rounds wait, and what becomes of them then."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        set_interruption(conn, name, hours, InterruptionPolicy(policy), actor=ACTOR)
    click.echo(f"Interrupted rounds of {name} wait {hours} hours, and are then ended by the policy {policy}.")


@operator.command("rotate-key")
@click.argument("name")
@json_option
@data_dir_option
def rotate(name: str, as_json: bool, data_dir: Path) -> None:
    """Give an operator a new key; the newest before it stays live beside it."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        made = rotate_key(conn, Sealer(seal_keys(data_dir)), name, actor=ACTOR)
    _show(made, as_json)


@operator.command("client-seeds")
@click.argument("name")
@click.argument("switch", type=click.Choice(["on", "off"]))
@data_dir_option
def client_seeds(name: str, switch: str, data_dir: Path) -> None:
    """Let an operator's players bring a text of their own into their deals, or not."""
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        changed = set_client_seeds(conn, name, switch == "on", actor=ACTOR)
    click.echo(f"Client seeds of {name} are {switch}{'' if changed else ', as before'}.")


def _show(made: Credentials, as_json: bool) -> None:
    shown: dict[str, Any] = {"operator": made.operator, "key_id": made.key_id, "secret": made.secret}
    if as_json:
        click.echo(json.dumps(shown))
        return
    for name, value in shown.items():
        click.echo(f"{name:<9}{value}")
    click.echo("The secret is not shown again.")


def _funding(said: str | None) -> Funding | None:
    return None if said is None else Funding(said)
