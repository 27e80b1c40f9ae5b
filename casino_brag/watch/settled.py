"""Settlements as the log has them, and what they come to: sums by day, wager, kind of play and much else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import numpy as np
import psycopg
from psycopg.rows import class_row

from casino_brag.game.cards import PACK
from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Decision, Spot
from casino_brag.odds.outcomes import Integers
from casino_brag.watch.bands import SUMMED, stake_band
from casino_brag.watch.dealt import CARDS_DEALT, Dealt
from casino_brag.watch.evidence import Batch
from casino_brag.watch.expectation import SCALE, Rules

MAIN: Final = "main"
PAIR_BONUS: Final = "pair_bonus"
REAL: Final = "real"
"""Play for money that is no test."""
VOIDED: Final = "voided"
"""The kind of play that a round moves to when it is voided after it was settled."""

K = TypeVar("K")
T = TypeVar("T")

_CARD: Final = {str(card): card.index for card in PACK}


@dataclass(frozen=True, slots=True)
class Settled:
    """A settlement as it was recorded, and where it belongs.

    `play` is ``real``, ``demo``, ``test`` or ``voided``; `sign` is 1 where it is to be added there, -1 where a void
    takes it away.
    """

    sign: int
    play: str
    opened_at: datetime
    settled_at: datetime
    deal_index: int
    decision: str
    player_cards: list[str]
    dealer_cards: list[str]
    wagers: list[dict[str, Any]]
    paytable_version_id: UUID
    operator_id: UUID
    currency: str
    channel: str | None

    @property
    def is_new(self) -> bool:
        """Whether it comes for the first time, and not because it is voided."""
        return self.sign > 0 and self.play != VOIDED

    @property
    def day(self) -> date:
        """The day on which it was settled, in UTC."""
        return self.settled_at.astimezone(UTC).date()

    def stake_minor(self, spot: Spot) -> int:
        """What was staked on a spot."""
        return sum(wager["stake_minor"] for wager in self.wagers if wager["spot"] == spot)

    def payout_minor(self, *, pair_bonus: bool) -> int:
        """What the Pair Bonus paid, or else all that is not the Pair Bonus, which is the main game."""
        return sum(
            wager["payout_minor"] for wager in self.wagers if (wager["spot"] == Spot.PAIR_BONUS) is pair_bonus
        )


def pending(conn: psycopg.Connection[Any], first: int, end: int) -> list[Settled]:
    """What the leaves from one to before another tell of settlements, in their order."""
    with conn.cursor(row_factory=class_row(Settled)) as cursor:
        return cursor.execute("SELECT * FROM rtp_pending(%s, %s)", [first, end]).fetchall()


def grouped(items: Iterable[T], key: Callable[[T], K]) -> list[tuple[K, list[T]]]:
    """Things by a key, each group in their order.

    >>> grouped([3, 1, 2], lambda number: number % 2)
    [(1, [3, 1]), (0, [2])]
    """
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return list(groups.items())


def card_numbers(hands: Iterable[list[str]]) -> Integers:
    """Cards by their numbers, a row for each list.

    >>> card_numbers([["2c", "As"]]).tolist()
    [[0, 51]]
    """
    return np.array([[_CARD[text] for text in cards] for cards in hands], dtype=np.int64)


def batch_of(paytable: Paytable, settled: Sequence[Settled]) -> Batch:
    """Settlements of one version, laid out."""
    ante, bonus = (
        np.array([one.stake_minor(spot) for one in settled]) for spot in (Spot.ANTE, Spot.PAIR_BONUS)
    )
    main_paid, bonus_paid = (
        np.array([one.payout_minor(pair_bonus=pair_bonus) for one in settled]) for pair_bonus in (False, True)
    )
    cards = card_numbers(one.player_cards + one.dealer_cards for one in settled)
    plays = np.array([one.decision == Decision.PLAY for one in settled])
    rounds = Rules.of(paytable).rounds(cards[:, :3], plays, ante, bonus)
    bands = np.array([_band(paytable, one, MAIN) for one in settled])
    return Batch(rounds, main_paid, bonus_paid, bands, cards)


def _band(paytable: Paytable, one: Settled, wager: str) -> int:
    """The stake band of the Ante, or of the Pair Bonus."""
    limits = paytable.limits[one.currency]
    if wager == MAIN:
        return stake_band(one.stake_minor(Spot.ANTE), limits.ante.min_minor)
    assert limits.pair_bonus is not None
    return stake_band(one.stake_minor(Spot.PAIR_BONUS), limits.pair_bonus.min_minor)


def buckets(paytable: Paytable, settled: Sequence[Settled], batch: Batch) -> list[dict[str, Any]]:
    """The settlements' sums, as rows of ``rtp_bucket``."""
    sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * len(SUMMED))
    columns = (
        batch.main_paid_minor,
        batch.rounds.expected,
        batch.rounds.variance,
        batch.bonus_paid_minor,
        batch.rounds.bonus_due_minor,
    )
    rows = zip(settled, *(column.tolist() for column in columns), strict=True)
    for one, main_paid, expected, variance, bonus_paid, bonus_due in rows:
        ante, play, bonus = (one.stake_minor(spot) for spot in (Spot.ANTE, Spot.PLAY, Spot.PAIR_BONUS))
        wagers = [(MAIN, (1, ante, ante**2, ante + play, main_paid, expected, variance))]
        if bonus:
            wagers.append((PAIR_BONUS, (1, bonus, bonus**2, bonus, bonus_paid, bonus_due * SCALE, 0)))
        for wager, figures in wagers:
            band = _band(paytable, one, wager)
            into = sums[one.day, wager, one.play, one.operator_id, one.currency, one.channel, band]
            for place, figure in enumerate(figures):
                into[place] += one.sign * figure
    names = ("day", "wager", "play", "operator_id", "currency", "channel", "stake_band", *SUMMED)
    return [dict(zip(names, (*key, *values), strict=True)) for key, values in sums.items()]


def dealt_rows(paytable: Paytable, settled: Sequence[Settled], batch: Batch) -> Iterator[dict[str, Any]]:
    """What was dealt, as rows of ``rtp_dealt``."""
    places: dict[tuple[date, str, int], list[int]] = defaultdict(list)
    for place, one in enumerate(settled):
        places[one.day, one.play, one.sign].append(place)
    counts: dict[tuple[date, str], Integers] = defaultdict(
        lambda: np.zeros(2 * len(Category) + CARDS_DEALT * len(PACK), int)
    )
    for (day, play, sign), of_it in places.items():
        dealt = Dealt.of(Rules.of(paytable), batch.cards[of_it])
        counts[day, play] += sign * np.concatenate((dealt.player, dealt.dealer, dealt.cards.ravel()))
    for (day, play), counted in counts.items():
        player, dealer, cards = np.split(counted, (len(Category), 2 * len(Category)))
        yield {
            "day": day,
            "play": play,
            "rounds": int(player.sum()),
            "player_categories": player.tolist(),
            "dealer_categories": dealer.tolist(),
            "cards": cards.tolist(),
        }
