"""Opening a round: two round trips, one that reads everything and one that writes everything.

Both are set-based: lists in, an item out for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.audit import Entry, EntryType
from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.catalogue.sessions import Caller, unknown_token
from casino_brag.errors import Code, ServiceError
from casino_brag.game.cards import PACK
from casino_brag.game.paytable import Refusal, StakeRefused
from casino_brag.game.rules import MINOR_MAX
from casino_brag.game.settlement import Stakes, maximum_payout_minor
from casino_brag.ids import uuid7
from casino_brag.rng import MODULE_DIGEST, Draw, RngUnavailable, draw_deal
from casino_brag.rounds.house import House
from casino_brag.rounds.round import AWAITING_DECISION, Round, as_its_owner_sees, seal_context, sealed_form
from casino_brag.wallet.answers import Answer, Known, Request, carry_out, operation, refusal

PAYTABLE_CHANGES_MAX: Final = 3
"""How often a round is prepared again because its game's paytable changed between reading and writing."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A player's request for a round.  `game` may be left to the session."""

    token_hash: bytes
    request: Request
    stakes: Stakes
    game: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the first round trip read for one request; `game_state` and `version_id` are the game's, if it exists."""

    caller: Caller
    known: Known
    game: str | None
    game_state: str | None
    version_id: UUID | None


def open_round(conn: psycopg.Connection[Any], house: House, ask: Ask) -> Answer:
    """Takes the stakes, deals and answers; or repeats the first answer to the same request.

    Raises `ServiceError`: unauthenticated, idempotency_key_reused, session_expired, invalid, game_unavailable,
    stake_out_of_limits, payout_limit_exceeded, rng_unavailable, round_open, insufficient_funds,
    balance_limit_exceeded, busy.  None of them leaves a trace.
    """
    for _ in range(PAYTABLE_CHANGES_MAX):
        (seen,) = read_for_opening(conn, [ask])
        if seen is None:
            raise unknown_token()
        if (answer := seen.known.answer_to(_bound_request(ask, seen))) is not None:
            return answer
        (outcome,) = carry_out(conn, "round_open", [prepare_opening(conn, house, ask, seen)])
        if outcome.name != "paytable_changed":
            return outcome.answer_or_refusal()
    raise ServiceError(Code.BUSY, "The game's paytable is being changed. Send the same request again.")


def read_for_opening(conn: psycopg.Connection[Any], asks: Sequence[Ask]) -> list[Seen | None]:
    """The first round trip: who calls, what is known of the request, what the game offers; None for no caller."""
    rows = conn.execute(
        """
        SELECT caller.*, known.fingerprint, known.status, known.body,
            coalesce(ask.game, caller.session_game), game.state, game.active_version_id
        FROM unnest(%s::bytea[], %s::text[], %s::text[]) WITH ORDINALITY
            AS ask (token_hash, idempotency_key, game, item)
        LEFT JOIN caller USING (token_hash)
        -- LIMIT keeps this a look-up by the whole key; flattened, it would read all answers of the player.
        LEFT JOIN LATERAL (
            SELECT * FROM answer WHERE (answer.operator_id, answer.player_id, answer.idempotency_key)
                = (caller.operator_id, caller.player_id, ask.idempotency_key) LIMIT 1
        ) AS known ON true
        LEFT JOIN game ON game.game = coalesce(ask.game, caller.session_game)
        ORDER BY ask.item
        """,
        [[ask.token_hash for ask in asks], [ask.request.key for ask in asks], [ask.game for ask in asks]],
    ).fetchall()
    return [_seen(row) for row in rows]


def _seen(row: tuple[Any, ...]) -> Seen | None:
    caller, row = Caller.from_columns(row)
    return None if caller is None else Seen(caller, Known(*row[:3]), *row[3:])


def prepare_opening(conn: psycopg.Connection[Any], house: House, ask: Ask, seen: Seen) -> Mapping[str, Any]:
    """Checks the stakes, draws the deal and puts everything that will be written into one operation."""
    caller = seen.caller
    _must_name_the_sessions_game(seen)
    caller.must_be_live()
    if seen.game_state != "enabled" or seen.version_id is None:
        raise refusal("game_unavailable")
    version = house.shelf.version(conn, seen.version_id)
    _check_stakes(version, caller.currency, ask.stakes)
    draw = _draw()
    dealt = [str(PACK[number]) for number in draw.cards]
    round_id = uuid7()
    context = seal_context(round_id, version.version_id)
    round_ = Round(
        round_id=round_id,
        session_id=caller.session_id,
        operator_id=caller.operator_id,
        player_id=caller.player_id,
        account_id=caller.account_id,
        mode=caller.mode,
        currency=caller.currency,
        game=version.game,
        paytable_version_id=version.version_id,
        rng_digest=MODULE_DIGEST,
        state=AWAITING_DECISION,
        opened_at=caller.read_at,
        ante_minor=ask.stakes.ante_minor,
        pair_bonus_minor=ask.stakes.pair_bonus_minor,
        payout_max_minor=maximum_payout_minor(version.paytable, ask.stakes),
        player_cards=dealt[:3],
        sealed_deal=house.sealer.seal(sealed_form(draw.index), context=context),
    )
    return operation(
        round_.columns() | {"balance_max_minor": MINOR_MAX},
        _bound_request(ask, seen),
        status=201,
        document=as_its_owner_sees(round_, version),
        audit=_entry(round_, version, caller, draw).text(),
    )


def _bound_request(ask: Ask, seen: Seen) -> Request:
    # The session's money and its game belong to what is asked for: real money is never answered with a demo round.
    return ask.request.within(str(seen.caller.account_id), seen.game or "")


def _must_name_the_sessions_game(seen: Seen) -> None:
    wrong = None
    if seen.game is None:
        wrong = "This session is for no game in particular: name one."
    elif seen.caller.session_game not in (None, seen.game):
        wrong = f"This session is for {seen.caller.session_game}."
    if wrong is not None:
        raise ServiceError(Code.INVALID, wrong, errors={"game": [wrong]})


def _check_stakes(version: PaytableVersion, currency: str, stakes: Stakes) -> None:
    try:
        version.paytable.check_stakes(currency, stakes.ante_minor, stakes.pair_bonus_minor)
    except StakeRefused as refused:
        code = (
            Code.PAYOUT_LIMIT_EXCEEDED
            if refused.reason is Refusal.PAYOUT_TOO_LARGE
            else Code.STAKE_OUT_OF_LIMITS
        )
        raise ServiceError(code, refused.detail, errors={refused.field: [refused.detail]}) from refused


def _draw() -> Draw:
    try:
        return draw_deal()
    except RngUnavailable as unavailable:
        raise ServiceError(
            Code.RNG_UNAVAILABLE, "No cards can be drawn at present. No stake was taken; try again later."
        ) from unavailable


def _entry(round_: Round, version: PaytableVersion, caller: Caller, draw: Draw) -> Entry:
    return Entry(
        type=EntryType.ROUND_OPENED,
        occurred_at=round_.opened_at,
        actor=f"player:{caller.player_id}",
        operator_id=round_.operator_id,
        player_id=round_.player_id,
        session_id=round_.session_id,
        round_id=round_.round_id,
        payload={
            "mode": round_.mode,
            "currency": round_.currency,
            "game": round_.game,
            "paytable_version": version.version,
            "paytable_digest": version.digest,
            "rng_digest": round_.rng_digest,
            "discards": draw.discards,
            "ante_minor": round_.ante_minor,
            "pair_bonus_minor": round_.pair_bonus_minor,
            "payout_max_minor": round_.payout_max_minor,
            "player_cards": round_.player_cards,
        },
    )
