"""Voiding a round: before it is settled its stakes go back, afterwards what was lost does.  No winnings are taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.db.records import as_jsonb
from casino_brag.errors import Code, ServiceError
from casino_brag.game.settlement import Deal, Decision, settle
from casino_brag.rounds.house import House
from casino_brag.rounds.round import SETTLED, VOIDED, Round, as_its_owner_sees, hand
from casino_brag.rounds.settling import Unsealed, owed, revealed, unseal
from casino_brag.sealing import SealBroken
from casino_brag.wallet.answers import Answer, Request, keep, known_answer, refusal
from casino_brag.wallet.transactions import Purpose, credit_row

ATTEMPTS_MAX: Final = 2
"""How often a void is prepared: a round can be settled between reading and writing, and that once."""


class VoidPolicy(StrEnum):
    """What a player gets for a round that is voided before it was settled."""

    REFUND = "refund"
    """The stakes."""
    BETTER = "better"
    """The stakes, and what the better decision would have won, if it would have won."""


@dataclass(frozen=True, slots=True)
class Voiding:
    """Who voids a round and why; `approver` is another person, or the rule that says so."""

    reason: str
    actor: str
    approver: str
    policy: VoidPolicy
    at: datetime


def void_round(
    conn: psycopg.Connection[Any],
    house: House,
    operator_id: UUID,
    round_id: UUID,
    voiding: Voiding,
    *,
    settled_too: bool = True,
) -> Round:
    """Voids a round of an operator's, once: one that was voided before is left as it is, and so is a settled one
    unless `settled_too`.  Returns the round as it is then.

    Raises `ServiceError`: round_not_found, request_in_progress (an operator's wallet is being asked about it).
    """
    for _ in range(ATTEMPTS_MAX):
        player, found = _read(conn, operator_id, round_id)
        if found.state == VOIDED or (found.state == SETTLED and not settled_too):
            return found
        op = _op(conn, house, found, player, voiding)
        answered = conn.execute("SELECT round_void(%s)", [as_jsonb(op)]).fetchone()
        assert answered is not None
        if answered[0] in ("voided", "already_voided"):
            return _read(conn, operator_id, round_id)[1]
        if answered[0] == "request_in_progress":
            break
    raise refusal("request_in_progress")


def answer_void(
    conn: psycopg.Connection[Any],
    house: House,
    operator_id: UUID,
    round_id: UUID,
    voiding: Voiding,
    request: Request,
) -> Answer:
    """Voids a round and answers with it, or repeats the answer of the void that came first.

    Raises what `void_round` raises, and `ServiceError` idempotency_key_reused.
    """
    _, found = _read(conn, operator_id, round_id)
    if (stored := known_answer(conn, operator_id, found.player_id, request)) is not None:
        return stored
    voided = void_round(conn, house, operator_id, round_id, voiding)
    version = house.shelf.version(conn, voided.paytable_version_id)
    return keep(
        conn, "void", round_id, operator_id, found.player_id, request, as_its_owner_sees(voided, version)
    )


def _read(conn: psycopg.Connection[Any], operator_id: UUID, round_id: UUID) -> tuple[str, Round]:
    row = conn.execute(
        "SELECT p.reference, r.* FROM round_record AS r JOIN player AS p USING (player_id)"
        " WHERE r.round_id = %s AND r.operator_id = %s",
        [round_id, operator_id],
    ).fetchone()
    if row is None:
        raise ServiceError(Code.ROUND_NOT_FOUND, "You have no round of this id. See GET /v1/operator/rounds.")
    return row[0], Round.from_columns(row[1:])


def _op(
    conn: psycopg.Connection[Any], house: House, found: Round, player: str, voiding: Voiding
) -> dict[str, Any]:
    """Everything that a void writes, as the operation of `round_void`."""
    version = house.shelf.version(conn, found.paytable_version_id)
    payload: dict[str, Any] = {"paytable_version": version.version, "paytable_digest": version.digest}
    compensation_minor, seed = 0, None
    if found.state == SETTLED:
        refund_minor = owed_minor = _lost_minor(found)
    else:
        refund_minor = found.ante_minor + found.pair_bonus_minor
        unsealed = _unsealed(house, found, version, voiding.policy)
        if unsealed is not None:
            seed = unsealed.seed
            payload |= {
                "deal_index": unsealed.draw.index,
                "discards": unsealed.draw.discards,
                "player_cards": found.player_cards,
                "dealer_cards": unsealed.dealer_cards,
            } | revealed(replace(found, seed=seed), version)
            if voiding.policy is VoidPolicy.BETTER:
                compensation_minor = _won_minor(found, version, unsealed)
        owed_minor = found.held_minor + compensation_minor
    payload |= {
        "policy": voiding.policy.value,
        "refund_minor": refund_minor,
        "compensation_minor": compensation_minor,
        "seed_lost": seed is None and found.state != SETTLED and found.commitment is not None,
    }
    entry = Entry(
        type=EntryType.ROUND_VOIDED,
        occurred_at=voiding.at,
        actor=voiding.actor,
        authoriser=voiding.approver,
        operator_id=found.operator_id,
        player_id=found.player_id,
        session_id=found.session_id,
        round_id=found.round_id,
        reason=voiding.reason,
        before={"state": found.state},
        after={"state": VOIDED},
        payload=payload,
    )
    return {
        "round_id": found.round_id,
        "player_id": found.player_id,
        "state_before": found.state,
        "reason": voiding.reason,
        "actor": voiding.actor,
        "approver": voiding.approver,
        "policy": voiding.policy.value,
        "refund_minor": refund_minor,
        "compensation_minor": compensation_minor,
        "voided_at": voiding.at,
        "seed": seed,
        "credit": None
        if found.debited_minor is None
        else credit_row(
            owed(found, player, Purpose.VOID, owed_minor, voiding.at), found.account_id, held=False
        ),
        "audit": entry.text(),
    }


def _unsealed(house: House, opened: Round, version: PaytableVersion, policy: VoidPolicy) -> Unsealed | None:
    """The deal of a round that is voided before it is settled.

    None where its seal does not open any more: that a round cannot be gone on with is what voids are for.  The better
    decision's result cannot be paid then, and `SealBroken` is raised where that is asked for.
    """
    try:
        return unseal(house, opened, version)
    except SealBroken:
        if policy is VoidPolicy.BETTER:
            raise
        return None


def _lost_minor(settled: Round) -> int:
    assert settled.total_staked_minor is not None
    assert settled.total_payout_minor is not None
    return max(0, settled.total_staked_minor - settled.total_payout_minor)


def _won_minor(opened: Round, version: PaytableVersion, unsealed: Unsealed) -> int:
    deal = Deal(player=opened.player_hand, dealer=hand(unsealed.dealer_cards))
    outcomes = [settle(version.paytable, opened.stakes, deal, decision) for decision in Decision]
    return max(0, *(outcome.total_payout_minor - outcome.total_staked_minor for outcome in outcomes))
