"""``wallet reconcile``: our books beside those of an operator's wallet."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import click

from casino_brag.catalogue.operators import operator_id_of
from casino_brag.cli.arguments import MOMENT, json_option
from casino_brag.cli.installation import data_dir_option, database, migrated_connection
from casino_brag.wallet.reconciling import Reconciliation, Unfinished, reconcile


@click.command("reconcile")
@click.argument("name")
@click.option(
    "--statement",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What the wallet has on record: CSV with transaction_id, amount_minor and state (done, refused, cancelled).",
)
@click.option(
    "--from",
    "begun_from",
    type=MOMENT,
    help="Only what was begun at or after this time, UTC if it says none.",
)
@click.option("--to", "begun_before", type=MOMENT, help="Only what was begun before this time.")
@json_option
@data_dir_option
def reconcile_command(
    name: str,
    statement: Path | None,
    begun_from: datetime | None,
    begun_before: datetime | None,
    as_json: bool,
    data_dir: Path,
) -> None:
    """Compare an operator's transactions with our ledger, and with the wallet's statement.

    Exit code 0 when everything agrees, 1 when something differs.
    """
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        conn.execute("SET timezone = 'UTC'")
        operator_id = operator_id_of(conn, name)
        if statement is None:
            found = reconcile(conn, operator_id, begun_from=begun_from, begun_before=begun_before)
        else:
            with statement.open(encoding="utf-8-sig", newline="") as lines:
                found = reconcile(conn, operator_id, lines, begun_from=begun_from, begun_before=begun_before)
    if as_json:
        click.echo(json.dumps(found.document(), default=str))
    else:
        click.echo("\n".join(_told(found)))
    if not found.agrees:
        raise SystemExit(1)


def _told(found: Reconciliation) -> list[str]:
    lines = [f"{'currency':<10}{'direction':<11}{'state':<12}{'transactions':>14}{'amount':>22}"]
    lines += [
        f"{total.currency:<10}{total.direction:<11}{total.state:<12}{total.transactions:>14}{total.amount_minor:>22}"
        for total in found.totals
    ] or ["No Activity"]
    lines += map(_unfinished, found.unfinished)
    lines += [
        f"The ledger differs from the transactions by {difference} minor units of {currency}."
        for currency, difference in found.ledger_difference_minor.items()
        if difference
    ]
    lines += [
        f"{one.transaction_id}: {one.what} (ours {_side(one.our_state, one.our_amount_minor)},"
        f" theirs {_side(one.their_state, one.their_amount_minor)})"
        for one in found.differences
    ]
    compared = "" if found.compared is None else f" {found.compared} lines of the statement were compared."
    verdict = "Everything agrees." if found.agrees else f"{found.differing} transactions differ."
    return [*lines, f"{verdict}{compared} {len(found.unfinished)} transactions are unfinished."]


def _unfinished(one: Unfinished) -> str:
    what = (
        f"{one.state}: {one.wager} {one.amount_minor} {one.currency} of {one.player} ({one.transaction_id})"
    )
    since = f"since {one.begun_at:%Y-%m-%d %H:%M:%S}, {one.attempts} attempts"
    return f"{what}, {since}: {one.last_problem or 'not tried yet'}"


def _side(state: str | None, amount_minor: int | None) -> str:
    return "none" if state is None else f"{state} {amount_minor}"
