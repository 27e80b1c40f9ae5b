"""``rounds``: what people who run the service may do to a round."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import click

from casino_brag.catalogue.operators import operator_id_of
from casino_brag.cli.arguments import ACTOR
from casino_brag.cli.installation import data_dir_option, database, migrated_connection, seal_keys
from casino_brag.db.clock import clock
from casino_brag.errors import ServiceError, SetUpError
from casino_brag.rounds.house import House
from casino_brag.rounds.voiding import Voiding, VoidPolicy, void_round

_WRITTEN = 500


@click.group()
def rounds() -> None:
    """Rounds that cannot go on as they should."""


@rounds.command()
@click.argument("round_id", type=click.UUID)
@click.option("--operator", "name", required=True, help="Whose round it is.")
@click.option("--reason", required=True, help="Why: its player and its operator are told.")
@click.option("--approver", required=True, help="Who approved it; not who asks for it.")
@click.option(
    "--policy",
    type=click.Choice([policy.value for policy in VoidPolicy]),
    default=VoidPolicy.REFUND.value,
    show_default=True,
    help="Whether the stakes go back, or also what the better decision would have won.",
)
@data_dir_option
def void(round_id: UUID, name: str, reason: str, approver: str, policy: str, data_dir: Path) -> None:
    """Void a round: its stakes go back or, if it is settled, what was lost."""
    if not (0 < len(reason.strip()) <= _WRITTEN and 0 < len(approver.strip()) <= _WRITTEN):
        raise click.UsageError(f"Give a reason and an approver, of up to {_WRITTEN} characters.")
    with database(data_dir) as addresses, migrated_connection(addresses) as conn:
        house = House.without_dealing(seal_keys(data_dir))
        voiding = Voiding(reason.strip(), ACTOR, approver.strip(), VoidPolicy(policy), clock(conn))
        try:
            voided = void_round(conn, house, operator_id_of(conn, name), round_id, voiding)
        except ServiceError as refused:
            raise SetUpError(refused.detail) from refused
    returned = f"{voided.refund_minor} minor units of {voided.currency} go back to the player"
    more = f", and {voided.compensation_minor} as compensation" if voided.compensation_minor else ""
    click.echo(f"Round {round_id} is voided: {voided.void_reason} {returned}{more}.")
