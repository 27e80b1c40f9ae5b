"""Voids that one person of staff proposed and another approved."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg

from casino_brag.db.clock import clock
from casino_brag.errors import Code, Errors, ServiceError
from casino_brag.rounds.house import House
from casino_brag.rounds.round import VOIDED
from casino_brag.rounds.voiding import Voiding, VoidPolicy, void_round
from casino_brag.staff.acting import stated
from casino_brag.staff.people import Person, Said
from casino_brag.staff.proposals import Kind, Proposal, propose


def propose_void(conn: psycopg.Connection[Any], by: Person, round_id: UUID, policy: str, reason: str) -> UUID:
    """Proposes that a round is voided; the id of the proposal.

    Raises `ServiceError`: invalid (`errors` at `subject`, `policy`, `reason`), and else as `propose`.
    """
    errors = Errors()
    row = conn.execute("SELECT state FROM round_record WHERE round_id = %s", [round_id]).fetchone()
    if row is None or row[0] == VOIDED:
        errors["subject"] = ["There is no round of this id that could be voided."]
    if policy not in set(VoidPolicy):
        errors["policy"] = [f"Choose one of: {', '.join(VoidPolicy)}."]
    stated(errors, "reason", reason)
    if errors:
        raise ServiceError(Code.INVALID, "Something is to be put right.", errors=errors)
    return propose(conn, by, Kind.ROUND_VOID, str(round_id), {"policy": policy}, reason)


def void_proposed(house: House, conn: psycopg.Connection[Any], proposal: Proposal, said: Said) -> None:
    """Voids the round of a proposal in the transaction that approves it.

    Raises what `void_round` raises, and `ServiceError` wrong_state where the round was voided since it was proposed.
    """
    round_id = UUID(proposal.subject)
    row = conn.execute("SELECT operator_id FROM round WHERE round_id = %s", [round_id]).fetchone()
    assert row is not None
    assert said.authoriser is not None
    voiding = Voiding(
        proposal.reason, said.actor, said.authoriser, VoidPolicy(proposal.payload["policy"]), clock(conn)
    )
    if void_round(conn, house, row[0], round_id, voiding).voided_at != voiding.at:
        raise ServiceError(Code.WRONG_STATE, "The round was voided meanwhile: reject the proposal.")
