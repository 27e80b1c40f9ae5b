"""Deciding a round: the second wager or the fold, the settlement and the payout, in two round trips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.catalogue.sessions import Caller, unknown_token
from casino_brag.db.pool import Connect
from casino_brag.game.settlement import Decision, play_stake_minor
from casino_brag.rounds.commitments import Latest
from casino_brag.rounds.funding import Stake, staked
from casino_brag.rounds.house import House
from casino_brag.rounds.paying import pay
from casino_brag.rounds.reading import round_not_found
from casino_brag.rounds.round import AWAITING_DECISION, SETTLED, VOIDED, Round, as_its_owner_sees
from casino_brag.rounds.settling import Decider, Following, settle_round
from casino_brag.wallet.answers import Answer, Known, Outcome, Request, carry_out, keep, refusal
from casino_brag.wallet.transactions import Transaction


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

    @property
    def following(self) -> Following:
        """What the player's next round can be dealt from."""
        return Following(self.version_id, self.latest)


def decide(connect: Connect, house: House, ask: Ask) -> Answer:
    """Takes the decision, settles and pays; the same decision again repeats the first answer.

    An ended session decides its open rounds all the same.  Raises `ServiceError`: unauthenticated,
    idempotency_key_reused, round_not_found, already_decided, round_voided, insufficient_funds (the round still waits,
    and a fold costs nothing), game_unavailable (the game is disabled, or its pinned paytable was altered); and where
    the money is in an operator's wallet what `funding.staked` raises.
    """
    with connect() as conn:
        (seen,) = read_for_deciding(conn, [ask])
        if seen is None:
            raise unknown_token()
        if (answer := seen.known.answer_to(_bound_request(ask, seen.caller))) is not None:
            return answer
        if seen.round is None:
            raise round_not_found()
        if seen.round.debited_minor is None:
            (outcome,) = carry_out(
                conn, "round_decide", [prepare_decision(conn, house, ask, seen, seen.round)]
            )
            if outcome != _UNANSWERED:
                return outcome.answer_or_refusal()
            return _answer_kept(conn, house, ask, seen.caller)
        missing_minor = _missing_minor(conn, house, ask, seen.round)
    return _decide_from_wallet(connect, house, ask, seen, seen.round, missing_minor)


_UNANSWERED: Final = Outcome("replayed", None)
"""The decision was taken before, and nobody has been told yet."""


def _missing_minor(conn: psycopg.Connection[Any], house: House, ask: Ask, opened: Round) -> int:
    """What the operator's wallet has yet to be debited for the decision; 0 where the Play was reserved at the deal."""
    if opened.state != AWAITING_DECISION or ask.decision is not Decision.PLAY:
        return 0
    version = house.shelf.version(conn, opened.paytable_version_id)
    play_minor = play_stake_minor(version.paytable, opened.stakes)
    return opened.ante_minor + opened.pair_bonus_minor + play_minor - opened.held_minor


def _decide_from_wallet(
    connect: Connect, house: House, ask: Ask, seen: Seen, opened: Round, missing_minor: int
) -> Answer:
    """Decides a round whose stakes the operator's wallet was debited for; the wallet is asked to pay it at once."""
    caller = seen.caller
    if opened.state == VOIDED:
        raise refusal("round_voided")
    if opened.state == SETTLED and opened.decision != ask.decision:
        raise refusal("already_decided")

    def settled(conn: psycopg.Connection[Any], funded: Round) -> tuple[Outcome, Transaction]:
        ready = settle_round(conn, house, funded, ask.decision, Decider.of(caller), seen.following)
        credit = ready.credit(caller.player)
        (outcome,) = carry_out(conn, "round_decide", [ready.op(None, credit, held=True)])
        if outcome.name not in ("settled", "replayed"):
            raise refusal(outcome.name)
        return outcome, credit

    def played(conn: psycopg.Connection[Any], _: int) -> tuple[Outcome, Transaction]:
        outcome, credit = settled(conn, replace(opened, debited_minor=opened.held_minor + missing_minor))
        assert outcome.name == "settled", (
            "nobody else could decide while the debit of the Play was unfinished"
        )
        return outcome, credit

    if missing_minor > 0:
        stake = Stake(opened.round_id, opened.game, {"play": missing_minor}, decided=True)
        outcome, credit = staked(connect, house, caller, stake, played)
    else:
        with connect() as conn:
            outcome, credit = settled(conn, opened)
    if outcome.answer is not None:
        return outcome.answer
    balance_minor = None if outcome == _UNANSWERED else pay(connect, house, credit)
    with connect() as conn:
        return _answer_kept(conn, house, ask, caller, balance_minor)


def _answer_kept(
    conn: psycopg.Connection[Any], house: House, ask: Ask, caller: Caller, balance_minor: int | None = None
) -> Answer:
    """Answers a decision that was taken, as the round stands now, and keeps the answer unless one is kept already."""
    (seen,) = read_for_deciding(conn, [ask])
    assert seen is not None
    assert seen.round is not None
    version = house.shelf.version(conn, seen.round.paytable_version_id)
    offered = (
        None if seen.latest is None or seen.latest.over or seen.latest.in_play else seen.latest.commitment
    )
    document = as_its_owner_sees(seen.round, version) | {
        "next_commitment": None if offered is None else offered.named(),
        "balance_minor": caller.balance_minor if caller.wallet_url is None else balance_minor,
    }
    request = _bound_request(ask, caller)
    return keep(conn, "decide", ask.round_id, caller.operator_id, caller.player_id, request, document)


def read_for_deciding(conn: psycopg.Connection[Any], asks: Sequence[Ask]) -> list[Seen | None]:
    """The first round trip: who calls, what is known of the request, the round; None for no caller."""
    rows = conn.execute(
        """
        SELECT caller.*, known.fingerprint, known.status, known.body, game.active_version_id, latest.*, r.*
        FROM unnest(%s::bytea[], %s::text[], %s::uuid[]) WITH ORDINALITY
            AS ask (token_hash, idempotency_key, round_id, item)
        LEFT JOIN session_caller AS caller USING (token_hash)
        -- LIMIT keeps this a look-up by the whole key; flattened, it would read all answers of the player.
        LEFT JOIN LATERAL (
            SELECT * FROM answer WHERE (answer.operator_id, answer.player_id, answer.idempotency_key)
                = (caller.operator_id, caller.player_id, ask.idempotency_key) LIMIT 1
        ) AS known ON true
        LEFT JOIN round_record AS r ON r.round_id = ask.round_id
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
    """Everything that a decision about a round of the built-in wallet will write, as one operation."""
    ready = settle_round(conn, house, opened, ask.decision, Decider.of(seen.caller), seen.following)
    return ready.op(_bound_request(ask, seen.caller))


def _bound_request(ask: Ask, caller: Caller) -> Request:
    # Demonstration and real play do not meet, in stored answers neither.
    return ask.request.within(caller.mode)
