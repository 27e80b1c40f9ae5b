"""Rounds that nobody decided within the time their operator discloses: folded or voided, by the operator's rule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
import structlog

from casino_brag.catalogue.operators import InterruptionPolicy
from casino_brag.db.clock import clock
from casino_brag.db.pool import Connect
from casino_brag.errors import ServiceError
from casino_brag.game.settlement import Decision
from casino_brag.rounds.house import House
from casino_brag.rounds.round import VOIDED, Round
from casino_brag.rounds.settling import Decider, Following, settle_round
from casino_brag.rounds.voiding import Voiding, VoidPolicy, void_round
from casino_brag.sealing import SealBroken
from casino_brag.wallet.answers import carry_out

ACTOR: Final = "system:interruption-policy"
BATCH: Final = 50

log = structlog.get_logger("casino_brag.expiry")


@dataclass(frozen=True, slots=True)
class _Due:
    """A round whose time is over, and by whose rules; `player` is the operator's own name for the player."""

    player: str
    jurisdiction: str
    hours: int
    policy: str
    round: Round


def attend(connect: Connect, house: House) -> int:
    """Ends all rounds whose time is over; how many.  One that cannot be ended is reported, and holds up no other."""
    ended, after = 0, UUID(int=0)
    while True:
        with connect() as conn:
            now = clock(conn)
            page = _due(conn, now, after)
            for due in page:
                after = due.round.round_id
                try:
                    ended += _end(conn, house, due, now)
                except (ServiceError, SealBroken) as problem:
                    log.warning("round_not_ended", round_id=str(after), problem=type(problem).__name__)
        if len(page) < BATCH:
            return ended


def _due(conn: psycopg.Connection[Any], now: datetime, after: UUID) -> list[_Due]:
    rows = conn.execute(
        """
        SELECT p.reference, s.jurisdiction, o.interruption_hours, o.interruption_policy, r.*
        FROM operator AS o
        JOIN round_record AS r ON r.operator_id = o.operator_id AND r.state = 'awaiting_decision'
            AND r.opened_at < %s - make_interval(hours => o.interruption_hours)
        JOIN player AS p ON p.player_id = r.player_id
        JOIN session AS s ON s.session_id = r.session_id
        WHERE r.round_id > %s AND NOT r.debit_unfinished ORDER BY r.round_id LIMIT %s
        """,
        [now, after, BATCH],
    ).fetchall()
    return [
        _Due(player, jurisdiction, hours, policy, Round.from_columns(of_round))
        for player, jurisdiction, hours, policy, *of_round in rows
    ]


def _end(conn: psycopg.Connection[Any], house: House, due: _Due, now: datetime) -> bool:
    found = due.round
    if due.policy == InterruptionPolicy.VOID:
        reason = f"It was not decided within {due.hours} hours."
        voiding = Voiding(reason, ACTOR, ACTOR, VoidPolicy.REFUND, now)
        ended = void_round(conn, house, found.operator_id, found.round_id, voiding, settled_too=False)
        return ended.state == VOIDED
    by = Decider(ACTOR, found.session_id, due.jurisdiction, now)
    ready = settle_round(conn, house, found, Decision.FOLD, by, Following(None, None))  # nobody is told
    credit = None if found.debited_minor is None else ready.credit(due.player)
    (outcome,) = carry_out(conn, "round_decide", [ready.op(None, credit)])
    return outcome.name == "settled"
