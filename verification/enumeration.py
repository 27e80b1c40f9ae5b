"""All hands of three cards, ranked, and every deal of two such hands, compared.

Nothing here comes from the package ``casino_brag``.  A card is its text, such as ``Td``; a hand is three cards; and
the ranks and runs of a ranking are plain lists, weakest first, so that to rank is to look up a place in a list.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RANKS = "23456789TJQKA"
SUITS = "cdhs"
PACK = [rank + suit for rank in RANKS for suit in SUITS]
HANDS = list(combinations(PACK, 3))
"""22,100 hands.  Every array "by hand" is in this order."""

DEALER_HANDS = 18_424
"""Hands that avoid three given cards: 49 x 48 x 47 / 6."""

DEALS = len(HANDS) * DEALER_HANDS
"""407,170,400 deals of a player's and a dealer's hand, all equally likely."""

OUTCOMES = ("not_qualified", "win", "tie", "lose")
"""What the dealer's hand does to a player who plays: the columns of :func:`outcome_counts`."""


class Ranking(NamedTuple):
    """The table [ranking] of a paytable file."""

    categories: tuple[str, ...]
    best_prial: str | None
    ace_low_run: str

    @classmethod
    def of(cls, paytable: Mapping[str, Any]) -> Ranking:
        """The ranking of a paytable."""
        table = paytable["ranking"]
        return cls(tuple(table["categories"]), table.get("best_prial"), table["ace_low_run"])

    def runs(self) -> list[str]:
        """The runs, weakest first, each with its ranks from low to high."""
        runs = [RANKS[low : low + 3] for low in range(11)]  # 234, 345 ... JQK, QKA
        match self.ace_low_run:
            case "highest":
                runs.append("23A")
            case "second":
                runs.insert(len(runs) - 1, "23A")
            case "lowest":
                runs.insert(0, "23A")
            case "not_a_run":
                pass
        return runs

    def prials(self) -> list[str]:
        """The ranks of prials, weakest first."""
        if self.best_prial is None:
            return list(RANKS)
        return [rank for rank in RANKS if rank != self.best_prial] + [self.best_prial]


class Ranked(NamedTuple):
    """Category by hand, and rank class by hand: 1 for the weakest hands, 741 for the strongest."""

    category: list[str]
    rank_class: NDArray[np.int64]


@cache
def rank_hands(ranking: Ranking) -> Ranked:
    """Rank all hands; those of equal strength share a rank class."""
    runs, prials = ranking.runs(), ranking.prials()
    placed = [_place(hand, ranking.categories, runs, prials) for hand in HANDS]
    strengths = [strength for _, strength in placed]
    number = {strength: place for place, strength in enumerate(sorted(set(strengths)), start=1)}
    rank_class = np.array([number[strength] for strength in strengths])
    return Ranked([category for category, _ in placed], rank_class)


def _place(
    hand: tuple[str, ...], categories: tuple[str, ...], runs: list[str], prials: list[str]
) -> tuple[str, tuple[int, ...]]:
    """A hand's category, and its strength: the place of its category, then what counts inside the category."""
    ranks = "".join(sorted((card[0] for card in hand), key=RANKS.index))
    low, middle, high = (RANKS.index(rank) for rank in ranks)
    one_suit = len({card[1] for card in hand}) == 1
    inside: tuple[int, ...]
    if low == high:
        category, inside = "prial", (prials.index(ranks[0]),)
    elif ranks in runs:
        category, inside = "running_flush" if one_suit else "run", (runs.index(ranks),)
    elif one_suit:
        category, inside = "flush", (high, middle, low)
    elif low == middle:
        category, inside = "pair", (low, high)
    elif middle == high:
        category, inside = "pair", (high, low)
    else:
        category, inside = "high_card", (high, middle, low)
    return category, (categories.index(category), *inside)


def lowest_class(ranked: Ranked, least: str) -> int:
    """The weakest rank class that is ``least`` or better: a rank means the weakest high card headed by it, "pair"
    the weakest pair, "any" the weakest hand, and a shape such as Q-6-4 that hand.
    """

    def fits(hand: tuple[str, ...], category: str) -> bool:
        if least == "any":
            return True
        if least == "pair":
            return category == "pair"
        if len(least) == 1:
            return category == "high_card" and highest_first(hand)[0][0] == least
        return shape(hand) == least

    fitting = [
        int(rank_class)
        for hand, category, rank_class in zip(HANDS, *ranked, strict=True)
        if fits(hand, category)
    ]
    if not fitting:
        raise ValueError(f"{least!r} is no hand: give a rank from 5 to A, pair, or a shape such as Q-6-4")
    return min(fitting)


@cache
def outcome_counts(ranking: Ranking, qualifier: str) -> NDArray[np.int64]:
    """For each hand of the player, how many of the dealer's hands lead to each of OUTCOMES: 22,100 rows of 4.

    Each of the player's hands meets each of the dealer's hands that shares no card with it.
    """
    ranked = rank_hands(ranking)
    dealer = ranked.rank_class
    qualified = dealer >= lowest_class(ranked, qualifier)
    # One bit for each of 52 cards: two hands share a card exactly when their bits overlap.
    cards = np.array([sum(1 << PACK.index(card) for card in hand) for hand in HANDS])
    counts = np.empty((len(HANDS), len(OUTCOMES)), dtype=np.int64)
    for row, (own_cards, own) in enumerate(zip(cards, dealer, strict=True)):
        possible = (cards & own_cards) == 0
        compared = possible & qualified
        counts[row] = (
            np.count_nonzero(possible & ~qualified),
            np.count_nonzero(compared & (dealer < own)),
            np.count_nonzero(compared & (dealer == own)),
            np.count_nonzero(compared & (dealer > own)),
        )
        _show_progress(row + 1)
    assert (counts.sum(axis=1) == DEALER_HANDS).all()
    return counts


def _show_progress(hands: int) -> None:
    if hands % 2_210 == 0:
        end = "\n" if hands == len(HANDS) else ""
        print(f"\r{hands * DEALER_HANDS:>11,} of {DEALS:,} deals", end=end, file=sys.stderr, flush=True)


def highest_first(hand: tuple[str, ...]) -> list[str]:
    """The cards from the highest down, those of one rank as clubs, diamonds, hearts, spades."""
    return sorted(hand, key=lambda card: (-RANKS.index(card[0]), SUITS.index(card[1])))


def shape(hand: tuple[str, ...]) -> str:
    """What counts in a hand, such as ``Q-6-4``, or ``Q-6-4 suited`` when it is all of one suit."""
    suited = " suited" if len({card[1] for card in hand}) == 1 else ""
    return "-".join(card[0] for card in highest_first(hand)) + suited


@cache
def ranking_digest(ranking: Ranking) -> str:
    """SHA-256 over a line for each hand, ``RANKCLASS CATEGORY CARDS``, weakest first, and tied hands by their text."""
    ranked = rank_hands(ranking)
    rows = sorted(
        (int(rank_class), " ".join(highest_first(hand)), category)
        for hand, category, rank_class in zip(HANDS, *ranked, strict=True)
    )
    lines = "".join(f"{rank_class} {category} {cards}\n" for rank_class, cards, category in rows)
    return sha256(lines.encode("ascii")).hexdigest()
