"""Deciding a round: the second wager or the fold, the settlement and the payout, in two round trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.catalogue.sessions import Caller, unknown_token
from casino_brag.game.cards import PACK
from casino_brag.game.settlement import Deal, Decision, Settlement, settle
from casino_brag.rng import unrank
from casino_brag.rounds.house import House
from casino_brag.rounds.reading import round_not_found
from casino_brag.rounds.round import SETTLED, Round, as_its_owner_sees, hand, settlement_record
from casino_brag.sealing import SealBroken
from casino_brag.wallet.answers import Answer, Known, Request, body_around_balance, carry_out


@dataclass(frozen=True, slots=True)
class Ask:
    """A player's decision."""

    token: bytes
    request: Request
    round_id: UUID
    decision: Decision


@dataclass(frozen=True, slots=True)
class Seen:
    """What the first round trip read for one request; `round` is None when the caller has no such round."""

    caller: Caller
    known: Known
    round: Round | None


def decide(conn: psycopg.Connection[Any], house: House, ask: Ask) -> Answer:
    """Takes the decision, settles and pays; the same decision again repeats the first answer.

    An ended session decides its open rounds all the same.  Raises `ServiceError`: unauthenticated,
    idempotency_key_reused, round_not_found, already_decided, insufficient_funds (the round still waits, and a fold
    costs nothing), game_unavailable (its pinned paytable was altered).
    """
    (seen,) = read_for_deciding(conn, [ask])
    if seen is None:
        raise unknown_token()
    if (answer := seen.known.answer_to(ask.request)) is not None:
        return answer
    if seen.round is None:
        raise round_not_found()
    (outcome,) = carry_out(
        conn, "round_decide", [prepare_decision(conn, house, ask, seen.caller, seen.round)]
    )
    return outcome.answer_or_refusal()


def read_for_deciding(conn: psycopg.Connection[Any], asks: Sequence[Ask]) -> list[Seen | None]:
    """The first round trip: who calls, what is known of the request, the round; None for no caller."""
    rows = conn.execute(
        """
        SELECT caller.*, known.fingerprint, known.status, known.body, round.*
        FROM unnest(%s::bytea[], %s::text[], %s::uuid[]) WITH ORDINALITY
            AS ask (token_hash, idempotency_key, round_id, item)
        LEFT JOIN caller USING (token_hash)
        LEFT JOIN LATERAL (
            SELECT * FROM answer WHERE (answer.operator_id, answer.player_id, answer.idempotency_key)
                = (caller.operator_id, caller.player_id, ask.idempotency_key) LIMIT 1
        ) AS known ON true
        LEFT JOIN round ON round.round_id = ask.round_id
            AND (round.player_id, round.mode) = (caller.player_id, caller.mode)
        ORDER BY ask.item
        """,
        [[ask.token for ask in asks], [ask.request.key for ask in asks], [ask.round_id for ask in asks]],
    ).fetchall()
    return [_seen(row) for row in rows]


def _seen(row: tuple[Any, ...]) -> Seen | None:
    caller, row = Caller.from_columns(row)
    return None if caller is None else Seen(caller, Known(*row[:3]), Round.from_columns(row[3:]))


def prepare_decision(
    conn: psycopg.Connection[Any], house: House, ask: Ask, caller: Caller, opened: Round
) -> Mapping[str, Any]:
    """Opens the sealed deal, settles, and puts everything that will be written into one operation."""
    version = house.shelf.version(conn, opened.paytable_version_id)
    deal_index, dealer_cards = unseal_deal(house, opened)
    settlement = settle(
        version.paytable,
        opened.stakes,
        Deal(player=opened.player_hand, dealer=hand(dealer_cards)),
        ask.decision,
    )
    settled = replace(
        opened,
        state=SETTLED,
        decision=ask.decision.value,
        play_minor=settlement.total_staked_minor - opened.ante_minor - opened.pair_bonus_minor,
        dealer_cards=dealer_cards,
        result=settlement.result.value,
        settlement=settlement_record(settlement),
        total_staked_minor=settlement.total_staked_minor,
        total_payout_minor=settlement.total_payout_minor,
        settled_at=caller.read_at,
    )
    head, tail = body_around_balance(as_its_owner_sees(settled, version))
    return {
        "round_id": settled.round_id,
        "operator_id": settled.operator_id,
        "player_id": settled.player_id,
        "decision": settled.decision,
        "play_minor": settled.play_minor,
        "dealer_cards": settled.dealer_cards,
        "result": settled.result,
        "settlement": settled.settlement,
        "total_staked_minor": settled.total_staked_minor,
        "total_payout_minor": settled.total_payout_minor,
        "settled_at": settled.settled_at,
        **ask.request.fields,
        "status": 200,
        "body_head": head,
        "body_tail": tail,
        "audit": _entry(settled, version, caller, settlement, deal_index).text(),
    }


def unseal_deal(house: House, round_: Round) -> tuple[int, list[str]]:
    """The index of the deal that was sealed when the round was opened, and the dealer's three cards.

    Raises `SealBroken` when the sealed deal was altered, or is not the one whose player's cards were shown.
    """
    index = int(house.sealer.open(round_.sealed_deal, context=round_.seal_context))
    dealt = [str(PACK[number]) for number in unrank(index)]
    if dealt[:3] != round_.player_cards:
        raise SealBroken(f"the deal of round {round_.round_id} is not the one that was shown")
    return index, dealt[3:]


def _entry(
    round_: Round, version: PaytableVersion, caller: Caller, settlement: Settlement, deal_index: int
) -> Entry:
    return Entry(
        type=EntryType.ROUND_SETTLED,
        occurred_at=caller.read_at,
        actor=f"player:{caller.player_id}",
        operator_id=round_.operator_id,
        player_id=round_.player_id,
        session_id=caller.session_id,
        round_id=round_.round_id,
        payload={
            "paytable_version": version.version,
            "paytable_digest": version.digest,
            "decision": round_.decision,
            "deal_index": deal_index,
            "player_cards": round_.player_cards,
            "dealer_cards": round_.dealer_cards,
            "result": round_.result,
            "wagers": settlement_record(settlement)["wagers"],
            "total_staked_minor": round_.total_staked_minor,
            "total_payout_minor": round_.total_payout_minor,
        },
    )
