"""Bets against the rules on which cards are dealt: closed forms of counts, whatever order the deals came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum, inf, lgamma, log
from typing import Any, Final, Self

import numpy as np

from casino_brag.odds.outcomes import Integers
from casino_brag.watch.bets import Floats, log_mean, log_sum
from casino_brag.watch.dealt import CARDS_DEALT, PACK_SIZE, Dealt, category_chances
from casino_brag.watch.expectation import Rules

CONCENTRATIONS: Final = (1e2, 1e3, 1e4, 1e5, 1e6)
"""How closely the Dirichlet distributions lie about the true probabilities: as a sample of so many would tell them."""

CARD_SHIFTS: Final = tuple(sign * 0.8 / 2**power for power in range(7) for sign in (1, -1))
"""The bets on single cards: the logarithm of how much likelier a card is, 1.2 % to 120 % more or up to 55 % less."""

DAYS_OF_CARDS: Final = 30
"""After so many days cards are bet on anew."""


@dataclass(frozen=True, slots=True)
class CardBets:
    """Half of each stream's money from the start, half divided among months, each of which begins anew.

    Of the second half 1/((m + 1)(m + 2)) waits until month m.  ``life`` and ``month`` are the counts since the start
    and since this ``months``-th month began, with ``put_in`` of the money; ``ended`` is by stream the logarithm of what
    the months before made of theirs, empty while there were none.
    """

    life: Dealt
    month: Dealt
    months: int
    put_in: float
    ended: Mapping[str, float]

    @classmethod
    def none(cls) -> Self:
        """Before the first deal."""
        return cls(Dealt.none(), Dealt.none(), 0, 1 / 2, {})

    def after(self, rules: Rules, day: int, dealt: Dealt) -> Self:
        """With deals, on a day; what comes after its month is of this one."""
        begun = self._month_after(rules, day // DAYS_OF_CARDS)
        return replace(begun, life=self.life + dealt, month=begun.month + dealt)

    def log_e(self, rules: Rules) -> dict[str, float]:
        """The natural logarithm of each stream's e-value."""
        life, months, waiting = (
            card_evidence(rules, self.life),
            self._months_worth(rules),
            -log(self.months + 2),
        )
        return {
            stream: float(log_mean([life[stream], log_sum([months[stream], waiting])])) for stream in life
        }

    def document(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "life": self.life.document(),
            "month": self.month.document(),
            "months": self.months,
            "put_in": self.put_in,
            "ended": dict(self.ended),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """What :meth:`document` wrote."""
        return cls(
            Dealt.from_document(document["life"]),
            Dealt.from_document(document["month"]),
            int(document["months"]),
            float(document["put_in"]),
            {stream: float(log_e) for stream, log_e in document["ended"].items()},
        )

    def _month_after(self, rules: Rules, months: int) -> Self:
        if months <= self.months:
            return self
        put_in = 1 / (self.months + 2) - 1 / (months + 2)
        return replace(
            self, month=Dealt.none(), months=months, put_in=put_in, ended=self._months_worth(rules)
        )

    def _months_worth(self, rules: Rules) -> dict[str, float]:
        """What the months so far have made of their money, by stream."""
        return {
            stream: float(log_sum([self.ended.get(stream, -inf), log(self.put_in) + log_e]))
            for stream, log_e in card_evidence(rules, self.month).items()
        }


def card_evidence(rules: Rules, dealt: Dealt) -> dict[str, float]:
    """The natural logarithms of the e-values of some deals, by stream.

    >>> from casino_brag.game.paytable import Paytable
    >>> rules = Rules.of(Paytable.load("paytables/three-card-brag.toml"))
    >>> [round(log_e, 6) for log_e in card_evidence(rules, Dealt.none()).values()]
    [0.0, 0.0, 0.0, 0.0]
    """
    chances, even = category_chances(rules), np.full(PACK_SIZE, 1 / PACK_SIZE)
    return {
        "player's category": dirichlet(dealt.player, chances),
        "dealer's category": dirichlet(dealt.dealer, chances),
        "cards by position": float(log_mean([dirichlet(cards, even) for cards in dealt.cards])),
        "single cards": _single_cards(dealt),
    }


def dirichlet(counts: Integers, chances: Floats) -> float:
    """The logarithm of how much likelier these counts are, in the order they came, when their probabilities are
    Dirichlet distributed about ``chances`` than when they are these; averaged over ``CONCENTRATIONS``.

    >>> even = np.full(2, 1 / 2)
    >>> f"{(np.exp(dirichlet(np.array([1, 1]), even)) + np.exp(dirichlet(np.array([2, 0]), even))) / 2:.9f}"
    '1.000000000'
    """
    cells = tuple(zip(counts.tolist(), chances.tolist(), strict=True))
    total = int(counts.sum())
    return float(
        log_mean(
            [
                fsum(
                    (
                        lgamma(concentration) - lgamma(concentration + total),
                        *(lgamma(concentration * chance + count) for count, chance in cells),
                        *(-lgamma(concentration * chance) for _, chance in cells),
                        *(-count * log(chance) for count, chance in cells),
                    )
                )
                for concentration in CONCENTRATIONS
            ]
        )
    )


def _single_cards(dealt: Dealt) -> float:
    """The evidence of how often each card was among the player's three, the dealer's three and all six.

    A bet s is multiplied by exp(s) when the card is there, and always divided by the mean of that.
    """
    player, dealer = dealt.cards[:3].sum(axis=0), dealt.cards[3:].sum(axis=0)
    shifts = np.array(CARD_SHIFTS)[:, np.newaxis]
    logs = [
        shifts * counts - dealt.rounds * np.log1p(cards / PACK_SIZE * np.expm1(shifts))
        for counts, cards in ((player, 3), (dealer, 3), (player + dealer, CARDS_DEALT))
    ]
    return float(log_mean(np.concatenate(logs, axis=None)))
