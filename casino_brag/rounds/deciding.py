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
from casino_brag.errors import ServiceError
from casino_brag.game.cards import PACK
from casino_brag.game.settlement import Deal, Decision, settle
from casino_brag.rng import Draw, RngUnavailable, seeds, unrank
from casino_brag.rounds.commitments import Commitment, Latest, Made, Series, commitment_record, make
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
    """What the first round trip read for one request; `round` is None when the caller has no such round.

    `version_id` is what the round's game offers now, if it is open; `latest` the newest commitment of the series.
    """

    caller: Caller
    known: Known
    round: Round | None
    version_id: UUID | None
    latest: Latest | None


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
    (outcome,) = carry_out(conn, "round_decide", [prepare_decision(conn, house, ask, seen, seen.round)])
    return outcome.answer_or_refusal()


def read_for_deciding(conn: psycopg.Connection[Any], asks: Sequence[Ask]) -> list[Seen | None]:
    """The first round trip: who calls, what is known of the request, the round; None for no caller."""
    rows = conn.execute(
        """
        SELECT caller.*, known.fingerprint, known.status, known.body, game.active_version_id, latest.*, r.*
        FROM unnest(%s::bytea[], %s::text[], %s::uuid[]) WITH ORDINALITY
            AS ask (token_hash, idempotency_key, round_id, item)
        LEFT JOIN player_caller AS caller USING (token_hash)
        -- LIMIT keeps this a look-up by the whole key; flattened, it would read all answers of the player.
        LEFT JOIN LATERAL (
            SELECT * FROM answer WHERE (answer.operator_id, answer.player_id, answer.idempotency_key)
                = (caller.operator_id, caller.player_id, ask.idempotency_key) LIMIT 1
        ) AS known ON true
        LEFT JOIN committed_round AS r ON r.round_id = ask.round_id
            AND (r.player_id, r.mode) = (caller.player_id, caller.mode)
        LEFT JOIN game ON game.game = r.game AND game.state = 'enabled'
        LEFT JOIN LATERAL latest_commitment(r.player_id, r.game, r.mode) AS latest ON true
        ORDER BY ask.item
        """,
        [[ask.token_hash for ask in asks], [ask.request.key for ask in asks], [ask.round_id for ask in asks]],
    ).fetchall()
    return [_seen(row) for row in rows]


def _seen(row: tuple[Any, ...]) -> Seen | None:
    caller, row = Caller.from_columns(row)
    if caller is None:
        return None
    known, version_id = Known(*row[:3]), row[3]
    latest, of_round = Latest.from_columns(row[4:])
    found = None if of_round[0] is None else Round.from_columns(of_round)
    return Seen(caller, known, found, version_id, latest)


def prepare_decision(
    conn: psycopg.Connection[Any], house: House, ask: Ask, seen: Seen, opened: Round
) -> Mapping[str, Any]:
    """Opens the sealed deal, settles, and puts everything that will be written into one operation.

    All of it comes from what is stored: a round is finished without random numbers too, and then without a
    commitment of the next one.
    """
    caller = seen.caller
    version = house.shelf.version(conn, opened.paytable_version_id)
    unsealed = unseal(house, opened, version)
    settlement = settle(
        version.paytable,
        opened.stakes,
        Deal(player=opened.player_hand, dealer=hand(unsealed.dealer_cards)),
        ask.decision,
    )
    settled = replace(
        opened,
        state=SETTLED,
        decision=ask.decision.value,
        play_minor=settlement.total_staked_minor - opened.ante_minor - opened.pair_bonus_minor,
        dealer_cards=unsealed.dealer_cards,
        result=settlement.result.value,
        settlement=settlement_record(settlement),
        total_staked_minor=settlement.total_staked_minor,
        total_payout_minor=settlement.total_payout_minor,
        settled_at=caller.read_at,
        seed=unsealed.seed,
    )
    made = _next(conn, house, seen, opened)
    offered = made.commitment if made is not None else _offered_already(seen, opened)
    return operation(
        settled.columns()
        | {"next": None if made is None else made.row, "next_audit": None if made is None else made.audit},
        _bound_request(ask, caller),
        status=200,
        document=as_its_owner_sees(settled, version)
        | {"next_commitment": None if offered is None else offered.named()},
        audit=_entry(settled, version, caller, unsealed.draw).text(),
    )


def _next(conn: psycopg.Connection[Any], house: House, seen: Seen, opened: Round) -> Made | None:
    """The commitment of the player's next round; None where the game is closed or no random numbers can be had."""
    if seen.version_id is None or _offered_already(seen, opened) is not None:
        return None
    try:
        version = house.shelf.version(conn, seen.version_id)
    except ServiceError:
        return None  # the rules that are offered now were altered; this round's own are sound
    house.upkeep.attend(conn, house.generator)
    try:
        series = Series(opened.operator_id, opened.player_id, opened.mode, version, seen.latest)
        return make(house, series, seen.caller.read_at)
    except RngUnavailable:
        house.upkeep.attend(conn, house.generator)
        return None


def _offered_already(seen: Seen, opened: Round) -> Commitment | None:
    # A round from before there were commitments is settled beside one that was made since.
    latest = seen.latest
    if latest is None or latest.over or latest.commitment.round_id == opened.round_id:
        return None
    return latest.commitment


def _bound_request(ask: Ask, caller: Caller) -> Request:
    # Demonstration and real play do not meet, in stored answers neither.
    return ask.request.within(caller.mode)


@dataclass(frozen=True, slots=True)
class Unsealed:
    """What was hidden while a round was open; `seed` is None for one from before there were commitments."""

    draw: Draw
    dealer_cards: list[str]
    seed: bytes | None


def unseal(house: House, round_: Round, version: PaytableVersion) -> Unsealed:
    """The deal that was sealed when the round was opened, and the seed that it came from.

    Raises `SealBroken` when the sealed deal was altered, is not the one whose player's cards were shown, or is not
    the one that the round's seed gives.
    """
    context = seal_context(round_.round_id, round_.paytable_version_id)
    index = int(house.sealer.open(round_.sealed_deal, context=context))
    dealt = [str(PACK[number]) for number in unrank(index)]
    if dealt[:3] != round_.player_cards:
        raise SealBroken(f"the deal of round {round_.round_id} is not the one that was shown")
    if round_.commitment is None:
        return Unsealed(Draw(index, 0), dealt[3:], None)
    seed = round_.commitment.open_seed(house.sealer)
    draw = seeds.deal(seed, round_.round_id, version.digest, round_.client_seed)
    if draw.index != index:
        raise SealBroken(f"the deal of round {round_.round_id} is not the one that was committed to")
    return Unsealed(draw, dealt[3:], seed)


def _entry(round_: Round, version: PaytableVersion, caller: Caller, draw: Draw) -> Entry:
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
            "deal_index": draw.index,
            "discards": draw.discards,
            "player_cards": round_.player_cards,
            "dealer_cards": round_.dealer_cards,
            "result": round_.result,
            "wagers": round_.settlement["wagers"],
            "total_staked_minor": round_.total_staked_minor,
            "total_payout_minor": round_.total_payout_minor,
        }
        | _revealed(round_, version),
    )


def _revealed(round_: Round, version: PaytableVersion) -> dict[str, Any]:
    if round_.commitment is None or round_.seed is None:
        return {}
    return commitment_record(round_.commitment, game=round_.game, rules_digest=version.digest) | {
        "seed": round_.seed.hex(),
        "client_seeds": round_.client_seed_policy,
        "client_seed": round_.client_seed,
    }
