"""``games``: how they stand, and closing and opening them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from casino_brag.catalogue.closures import ClosureState, close, closures, game_states, open_again, scope_named
from casino_brag.cli.arguments import ACTOR, Parsed, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.db.clock import rfc3339
from casino_brag.staff.acting import REASON_LENGTH_MAX


def _reason(text: str) -> str:
    if not (text.strip() and text.isprintable() and len(text) <= REASON_LENGTH_MAX):
        raise ValueError(f"give a reason on one line, of at most {REASON_LENGTH_MAX} characters")
    return text


def _scope_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        data_dir_option,
        click.option("--authoriser", help="Who has allowed it, for the record."),
        click.option(
            "--reason", type=Parsed("text", _reason), required=True, help="Why; kept on record for good."
        ),
        click.option("--operator", help="For the rounds of this operator only."),
        click.option("--version", type=click.IntRange(1), help="This version of the game's paytable only."),
        click.argument("game", required=False),
    ):
        command = option(command)
    return command


@click.group()
def games() -> None:
    """Games: how they stand, and closing and opening them."""


@games.command("list")
@click.option("--operator", help="As this operator's rounds find them.")
@json_option
@data_dir_option
def list_games(operator: str | None, as_json: bool, data_dir: Path) -> None:
    """Show how every game stands, its open rounds, and what is closed.

    A game that drains is shown as drained once it has no open rounds left.
    """
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        operator_id = scope_named(conn, game=None, version=None, operator=operator).operator_id
        states, in_force = game_states(conn, operator_id), closures(conn, operator_id)
    if as_json:
        told = {"games": [*map(asdict, states)], "closures": [*map(asdict, in_force)]}
        click.echo(json.dumps(told, default=rfc3339))
        return
    for found in states:
        drained = found.state == ClosureState.DRAINING and not found.open_rounds
        click.echo(
            f"{found.game:<24}{'drained' if drained else found.state:<10}{found.open_rounds:>6} open"
            f"{'' if found.reason is None else f'   {found.reason}'}"
        )
    for closure in in_force:
        what = "everything" if closure.game is None else closure.game
        version = "" if closure.version is None else f", version {closure.version}"
        whose = "" if closure.operator is None else f", for {closure.operator}"
        click.echo(
            f"{closure.state} since {rfc3339(closure.since)}: {what}{version}{whose}: {closure.reason}"
        )


@games.command()
@_scope_options
def disable(data_dir: Path, **wanted: Any) -> None:
    """Stop a game, or everything, at once: no new rounds, and the open ones wait."""
    _set(data_dir, ClosureState.DISABLED, **wanted)


@games.command()
@_scope_options
def drain(data_dir: Path, **wanted: Any) -> None:
    """Take no new rounds of a game, or of any, and let the open ones be decided."""
    _set(data_dir, ClosureState.DRAINING, **wanted)


@games.command()
@_scope_options
def enable(data_dir: Path, **wanted: Any) -> None:
    """Take such a closing back; it is the one of exactly the same game, version and operator that ends."""
    _set(data_dir, None, **wanted)


def _set(
    data_dir: Path,
    state: ClosureState | None,
    *,
    game: str | None,
    version: int | None,
    operator: str | None,
    reason: str,
    authoriser: str | None,
) -> None:
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        scope = scope_named(conn, game=game, version=version, operator=operator)
        said: dict[str, Any] = {"actor": ACTOR, "authoriser": authoriser}
        if state is None:
            changed = open_again(conn, scope, reason, **said)
        else:
            changed = close(conn, scope, state, reason, **said)
        states = game_states(conn, scope.operator_id)
    click.echo("Done." if changed else "It was so before.")
    for found in states:
        if game in (None, found.game):
            click.echo(f"{found.game} is {found.state}; open rounds: {found.open_rounds}")
