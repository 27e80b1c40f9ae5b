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
from casino_brag.game.settlement import Deal, Decision, settle
from casino_brag.rng import unrank
from casino_brag.rounds.house import House
from casino_brag.rounds.reading import round_not_found
from casino_brag.rounds.round import SETTLED, Round, as_its_owner_sees, hand, seal_context, settlement_record
from casino_brag.sealing import SealBroken
from casino_brag.wallet.answers import Answer, Known, Request, carry_out, operation


@dataclass(frozen=True, slots=True)
class Ask:
    """A player's decision."""

    token_hash: bytes
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
    if (answer := seen.known.answer_to(_bound_request(ask, seen.caller))) is not None:
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
        -- LIMIT keeps this a look-up by the whole key; flattened, it would read all answers of the player.
        LEFT JOIN LATERAL (
            SELECT * FROM answer WHERE (answer.operator_id, answer.player_id, answer.idempotency_key)
                = (caller.operator_id, caller.player_id, ask.idempotency_key) LIMIT 1
        ) AS known ON true
        LEFT JOIN round ON round.round_id = ask.round_id
            AND (round.player_id, round.mode) = (caller.player_id, caller.mode)
        ORDER BY ask.item
        """,
        [[ask.token_hash for ask in asks], [ask.request.key for ask in asks], [ask.round_id for ask in asks]],
    ).fetchall()
    return [_seen(row) for row in rows]


def _seen(row: tuple[Any, ...]) -> Seen | None:
    caller, row = Caller.from_columns(row)
    if caller is None:
        return None
    return Seen(caller, Known(*row[:3]), None if row[3] is None else Round.from_columns(row[3:]))


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
    return operation(
        settled.columns(),
        _bound_request(ask, caller),
        status=200,
        document=as_its_owner_sees(settled, version),
        audit=_entry(settled, version, caller, deal_index).text(),
    )


def _bound_request(ask: Ask, caller: Caller) -> Request:
    # Demonstration and real play do not meet, in stored answers neither.
    return ask.request.within(caller.mode)


def unseal_deal(house: House, round_: Round) -> tuple[int, list[str]]:
    """The index of the deal that was sealed when the round was opened, and the dealer's three cards.

    Raises `SealBroken` when the sealed deal was altered, or is not the one whose player's cards were shown.
    """
    context = seal_context(round_.round_id, round_.paytable_version_id)
    index = int(house.sealer.open(round_.sealed_deal, context=context))
    dealt = [str(PACK[number]) for number in unrank(index)]
    if dealt[:3] != round_.player_cards:
        raise SealBroken(f"the deal of round {round_.round_id} is not the one that was shown")
    return index, dealt[3:]


def _entry(round_: Round, version: PaytableVersion, caller: Caller, deal_index: int) -> Entry:
    assert round_.settlement is not None
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
            "wagers": round_.settlement["wagers"],
            "total_staked_minor": round_.total_staked_minor,
            "total_payout_minor": round_.total_payout_minor,
        },
    )
