"""Rounds played over HTTP for tests of the watch, the log ordered, and what was settled added up the plain way."""

from __future__ import annotations

import secrets
from collections import defaultdict
from fractions import Fraction
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from casino_brag.catalogue.paytables import Shelf
from casino_brag.game.hands import Hand
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Decision, Result, Spot, Stakes, settle_outcome
from casino_brag.odds.outcomes import DEALER_HANDS, outcomes
from casino_brag.watch.accumulating import accumulate
from casino_brag.watch.alerts import Suspension
from tests.inprocess import AppHouse
from tests.running import Operator


class Sums(NamedTuple):
    """What a bucket holds."""

    rounds: int
    base_minor: int
    base_squares: int
    staked_minor: int
    returned_minor: int
    expected: int
    variance: int


def order(house: AppHouse) -> None:
    """Gives every entry its leaf, as the sealer does."""
    with house.service.database.connection() as conn:
        while conn.execute("SELECT audit_order(1000)").fetchone() != (0,):
            pass


def buckets(conn: psycopg.Connection[Any]) -> dict[tuple[Any, ...], Sums]:
    """All that was added up, without what has come to nothing."""
    rows = conn.execute(
        "SELECT paytable_version_id, day, wager, play, operator_id, currency, channel, stake_band, rounds,"
        " base_minor, base_squares, staked_minor, returned_minor, expected, variance FROM rtp_bucket"
    )
    found = {tuple(row[:8]): Sums(*map(int, row[8:])) for row in rows}
    return {key: sums for key, sums in found.items() if sums != Sums(0, 0, 0, 0, 0, 0, 0)}


def recomputed(conn: psycopg.Connection[Any]) -> dict[tuple[Any, ...], Sums]:
    """The same of the rounds themselves, one by one."""
    shelf = Shelf()
    sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * 7)
    with conn.cursor(row_factory=dict_row) as cursor:
        rounds = cursor.execute(
            "SELECT r.*, s.test, s.channel FROM round AS r JOIN session AS s USING (session_id)"
            " WHERE r.decision IS NOT NULL"
        ).fetchall()
    for row in rounds:
        paytable = shelf.version(conn, row["paytable_version_id"]).paytable
        day = conn.execute("SELECT (%s AT TIME ZONE 'UTC')::date", [row["settled_at"]]).fetchone()
        play = "voided" if row["state"] == "voided" else "test" if row["test"] else row["mode"]
        for wager, band, figures in _wagers(paytable, row):
            named = (row["operator_id"], row["currency"], row["channel"])
            assert day is not None
            into = sums[(row["paytable_version_id"], day[0], wager, play, *named, band)]
            for place, figure in enumerate(figures):
                into[place] += figure
    return {key: Sums(*values) for key, values in sums.items()}


def _wagers(paytable: Paytable, row: dict[str, Any]) -> list[tuple[str, int, Sums]]:
    stakes = Stakes(row["ante_minor"], row["pair_bonus_minor"])
    paid = {wager["spot"]: wager["payout_minor"] for wager in row["settlement"]["wagers"]}
    bonus_paid = paid.pop("pair_bonus", 0)
    limits = paytable.limits[row["currency"]]
    assert limits.pair_bonus is not None
    found = []
    for wager, stake, staked, returned, is_bonus in (
        ("main", row["ante_minor"], row["ante_minor"] + row["play_minor"], sum(paid.values()), False),
        ("pair_bonus", row["pair_bonus_minor"], row["pair_bonus_minor"], bonus_paid, True),
    ):
        if stake:
            expected, variance = _moments(paytable, row, stakes, is_bonus)
            sums = Sums(1, stake, stake**2, staked, returned, expected, variance)
            least = limits.pair_bonus.min_minor if is_bonus else limits.ante.min_minor
            found.append((wager, band_of(stake, least), sums))
    return found


def band_of(stake_minor: int, least_minor: int) -> int:
    """How many times a stake is the least one times the root of ten."""
    band = 0
    while stake_minor**2 >= 10 ** (band + 1) * least_minor**2 and band < 11:
        band += 1
    return band


def _moments(paytable: Paytable, row: dict[str, Any], stakes: Stakes, is_bonus: bool) -> tuple[int, int]:
    """Mean × 18,424 and variance × 18,424² of what the round could pay, over the hands that the dealer can have."""
    hand = Hand.parse(" ".join(row["player_cards"]))
    if row["decision"] == Decision.FOLD:
        ways = {Result.FOLD: DEALER_HANDS}
    else:
        counted = outcomes(paytable.ranking, paytable.qualifier).of(hand)
        ways = {Result(name): number for name, number in counted._asdict().items()}
    mean, square = Fraction(0), Fraction(0)
    for result, number in ways.items():
        wagers = settle_outcome(paytable, stakes, paytable.ranking.category(hand), result)
        payout = sum(w.payout_minor for w in wagers if (w.spot is Spot.PAIR_BONUS) is is_bonus)
        mean += Fraction(number, DEALER_HANDS) * payout
        square += Fraction(number, DEALER_HANDS) * payout**2
    expected, variance = mean * DEALER_HANDS, (square - mean**2) * DEALER_HANDS**2
    assert expected.denominator == variance.denominator == 1
    return int(expected), int(variance)


def add_up(house: AppHouse, *, leaves: int = 20_000, suspension: Suspension = Suspension.DRAIN) -> None:
    """Orders the log and adds all of it up."""
    order(house)
    with house.service.database.connection() as conn:
        while accumulate(conn, house.service.house.shelf, suspension, leaves=leaves, lag_seconds=0):
            pass


def void(operator: Operator, round_id: str) -> None:
    """Voids a round, open or settled."""
    answer = operator.send(
        "POST",
        f"/v1/operator/rounds/{round_id}/void",
        {"reason": "A test.", "approver": "A tester"},
        headers={"Idempotency-Key": secrets.token_hex(8)},
    )
    assert answer.status_code == 200, answer.text
