"""One round derived anew from its records, part by part: what a replay of a period does, for a page about the round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import psycopg

from casino_brag.replay.deriving import differences
from casino_brag.replay.reading import Chunk, Key, read_chunk
from casino_brag.replay.records import Difference, Row, Rules


class Standing(StrEnum):
    """How a part of a round stands to what follows from the rest of it."""

    AGREES = "agrees"
    """It is recorded as it follows."""
    DISAGREES = "disagrees"
    """Something else is recorded."""
    HIDDEN = "hidden"
    """It follows from what is hidden while the round is open."""
    UNKNOWN = "not_derived"
    """It follows from what there is not: no seed, no decision, or no rules that could be used."""


@dataclass(frozen=True, slots=True)
class Check:
    """One part: its name, what it rests on, how it stands, and every difference."""

    part: str
    says: str
    standing: Standing
    differences: tuple[Difference, ...]


_RULES: Final = "Rules"
_COMMITMENT: Final = "Commitment"
_DEAL: Final = "Deal"
_SETTLEMENT: Final = "Settlement"
_MONEY: Final = "Money"
_RECORD: Final = "Audit log"

_PARTS: Final = (
    (
        _RULES,
        "The stored text of the paytable version has its digest, and takes these stakes.",
        ("paytable.", "round.stakes", "round.game", "round.payout_max_minor"),
    ),
    (
        _COMMITMENT,
        "The round's number, its seed, its rules and the commitment before give the value told before the stake.",
        ("commitment",),
    ),
    (
        _DEAL,
        "The seed, the round, its rules and the client seed give this deal: these cards, in this order.",
        ("round.deal", "round.player_cards", "round.dealer_cards"),
    ),
    (
        _SETTLEMENT,
        "Cards, stakes and decision give the categories, whether the dealer qualified, the result, and every wager.",
        ("settlement", "round.result", "round.play_minor", "round.total_"),
    ),
    (
        _MONEY,
        "Moved was what follows, once, and nothing else: stakes, payout, and what a void returns.",
        ("transfers", "debited_minor", "credits", "void.", "account_of_others", "requests_of_others"),
    ),
    (_RECORD, "The entries about the round tell what follows, at the times of the round.", ("",)),
)
"""Each part with what it rests on and how the names of its differences begin; the last has all others."""

_NOTHING_FOLLOWS: Final = ("paytable.digest", "round.stakes", "round.deal")
"""With one of these differences nothing else of the round was derived."""


def read_row(conn: psycopg.Connection[Any], opened_at: datetime, round_id: UUID) -> Row:
    """The records of one round, which was opened at this time."""
    alone = Chunk(Key(opened_at, round_id), Key(opened_at, UUID(int=round_id.int + 1)))
    (row,) = (row for rows in read_chunk(conn, alone) for row in rows)
    return row


def checks(row: Row, rules: Rules) -> list[Check]:
    """Every part of a round beside what follows from the rest.  Of an open round nothing that is hidden is told."""
    found = list(differences([row], {row.version_id: rules}))
    stopped = any(difference.what in _NOTHING_FOLLOWS for difference in found)
    return list(_checks(row, found, stopped))


def _checks(row: Row, found: list[Difference], stopped: bool) -> Iterator[Check]:
    for part, says, beginnings in _PARTS:
        own = tuple(difference for difference in found if difference.what.startswith(beginnings))
        found = [difference for difference in found if difference not in own]
        standing = Standing.DISAGREES if own else Standing.UNKNOWN if stopped else _standing(part, row)
        yield Check(part, says, standing, own)


def _standing(part: str, row: Row) -> Standing:
    lacking = (part in (_COMMITMENT, _DEAL) and row.seed is None) or (
        part == _SETTLEMENT and row.decision is None
    )
    if not lacking:
        return Standing.AGREES
    return Standing.HIDDEN if row.state == "awaiting_decision" else Standing.UNKNOWN
