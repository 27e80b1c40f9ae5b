"""Bets against the rules on what rounds pay, at the very odds of the rules.

Each round multiplies a bet's worth by a factor whose mean is exactly 1 under the rules, given the hand, the decision
and the stakes.  What follows from that is in :mod:`casino_brag.watch.evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from casino_brag.game.hands import AceLowRun, Ranking
from casino_brag.game.paytable import Paytable
from casino_brag.odds.outcomes import Integers, hand_cards
from casino_brag.watch.expectation import SCALE, Bools, Rounds, Rules

Floats = NDArray[np.float64]

UNIT: Final = 2**32
"""Logarithms of factors are whole numbers of 1/2^32, rounded down: so they add up exactly, in any order, and rounding
never makes evidence.  A thousand million rounds lose a quarter of 1 of a logarithm by it, at the most."""

SHIFTS: Final = tuple(sign * 2.0**-power for power in range(1, 12) for sign in (1, -1))
"""The bets on the main game's mean: one half down to 1/2048, upwards and downwards.

A payout that is too high by d Antes on average is caught fastest by the bet d over the variance, which is about 2.3
squared Antes in a round that is played: so these are for faults from one Ante down to a thousandth of one.  Where a
fault lies between two of them it costs at most a ninth of the speed.  Still smaller ones take any test tens of millions
of rounds."""

DOUBT: Final = 1 / 16
"""Bets on another order of hands keep this share for the rules, so that no single round ruins them."""


@dataclass(frozen=True, eq=False, slots=True)
class Bets:
    """Equal shares of money in several bets, each divided among the days on which to begin.

    Of each bet's money 1/((d + 1)(d + 2)) waits until day d, half of it being there on day 0.  ``began`` holds the
    natural logarithm of what a bet was worth when ``day`` began, with what was put in on it; ``gains`` by how much it
    has grown since, in 1/``UNIT``.  The last axis is the bet's; any axes before it are histories of their own.

    >>> bets = Bets.none(2).after(0, np.array([5 * UNIT, -5 * UNIT]))
    >>> f"{np.exp(bets.log_e):.4f}"
    '37.6050'
    """

    day: int
    began: Floats
    gains: Integers

    @classmethod
    def none(cls, *shape: int) -> Self:
        """So many bets, before the first round of day 0."""
        return cls(0, np.full(shape, log(1 / 2)), np.zeros(shape, dtype=np.int64))

    def after(self, day: int, gains: Integers) -> Self:
        """With what the bets gained, as logarithms in 1/``UNIT``, on a day; what comes after its day is of this one."""
        if day <= self.day:
            return replace(self, gains=self.gains + gains)
        put_in = log(1 / (self.day + 2) - 1 / (day + 2))
        return replace(self, day=day, began=np.logaddexp(self._worth, put_in), gains=gains)

    @property
    def log_e(self) -> Any:
        """The natural logarithm of what all is worth, with what waits for days to come: one number a history."""
        waiting = -log(self.day + 2)
        return np.logaddexp(log_mean(self._worth), waiting)

    @property
    def _worth(self) -> Floats:
        return self.began + self.gains / UNIT

    def document(self) -> dict[str, Any]:
        """One history's, as plain data, ready for JSON."""
        return {"day": self.day, "began": self.began.tolist(), "gains": self.gains.tolist()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """What :meth:`document` wrote."""
        began, gains = np.array(document["began"], dtype=float), np.array(document["gains"], dtype=np.int64)
        return cls(int(document["day"]), began, gains)


def log_sum(logs: ArrayLike) -> Any:
    """The logarithm of the sum of the numbers with these logarithms, along the last axis.

    >>> f"{log_sum([1000.0, 1000.0]) - 1000:.6f}"
    '0.693147'
    """
    return np.logaddexp.reduce(np.asarray(logs, dtype=float), axis=-1)


def log_mean(logs: ArrayLike) -> Any:
    """The logarithm of the mean of the numbers with these logarithms, along the last axis."""
    return log_sum(logs) - log(np.shape(logs)[-1])


def main_gains(rounds: Rounds, main_paid_minor: Integers) -> Integers:
    """What each round adds to each of the bets ``SHIFTS``, in 1/``UNIT``: shape (rounds, bets).

    With x the payout in Antes a bet l is multiplied by exp(l x) over its mean under the rules.  Folded rounds add
    nothing, as nothing was left to chance, and neither do impossible payouts, which are proof by themselves.

    >>> rules = Rules.of(Paytable.load("paytables/three-card-brag.toml"))
    >>> aces, stakes = np.array([[51, 50, 49]] * 2), np.array([100, 100])
    >>> rounds = rules.rounds(aces, np.array([True, False]), stakes, np.zeros(2, dtype=np.int64))
    >>> (main_gains(rounds, np.array([900, 0]))[:, :2] / UNIT).round(4).tolist()
    [[0.1551, -0.2135], [0.0, 0.0]]
    """
    gains = np.zeros((len(rounds), len(SHIFTS)), dtype=np.int64)
    some = np.flatnonzero(rounds.plays & (rounds.ways_to(main_paid_minor) > 0))
    ante = rounds.ante_minor[some].astype(np.float64)
    chances, can_be = rounds.ways[some] / SCALE, rounds.ways[some] > 0
    payouts, paid = rounds.payouts[some] / ante[:, np.newaxis], main_paid_minor[some] / ante
    most = np.where(can_be, payouts, -np.inf).max(axis=1)
    least = np.where(can_be, payouts, np.inf).min(axis=1)
    for bet, shift in enumerate(SHIFTS):
        # Relative to the payout that the bet likes best, so that nothing overflows.
        best = most if shift > 0 else least
        factors = np.exp(np.where(can_be, shift * (payouts - best[:, np.newaxis]), -np.inf))
        mean = (chances * factors).sum(axis=1)
        gains[some, bet] = np.floor((shift * (paid - best) - np.log(mean)) * UNIT)
    return gains


def ranking_gains(rules: Rules, rounds: Rounds, main_paid_minor: Integers) -> Integers:
    """What each round adds to each of the bets on :func:`other_rankings`, in 1/``UNIT``: shape (rounds, bets).

    A bet is multiplied by the probability that the other order gives the payout, over that under the rules.

    >>> rules = Rules.of(Paytable.load("paytables/three-card-brag.toml"))
    >>> ace_low, stakes = np.array([[51, 1, 6]]), np.array([100])
    >>> rounds = rules.rounds(ace_low, np.array([True]), stakes, np.array([0]))
    >>> (ranking_gains(rules, rounds, np.array([100]))[:, :3] / UNIT).round(2).tolist()
    [[0.41, 2.05, -2.77]]
    """
    others = _others(rules.paytable)
    gains = np.zeros((len(rounds), len(others)), dtype=np.int64)
    ways = rounds.ways_to(main_paid_minor)
    for bet, other in enumerate(others):
        some = np.flatnonzero(other.differs[rounds.hands] & rounds.plays & (ways > 0))
        cards, no_bonus = hand_cards()[rounds.hands[some]], np.zeros(len(some), dtype=np.int64)
        otherwise = other.rules.rounds(cards, rounds.plays[some], rounds.ante_minor[some], no_bonus)
        ratios = DOUBT + (1 - DOUBT) * otherwise.ways_to(main_paid_minor[some]) / ways[some]
        gains[some, bet] = np.floor(np.log(ratios) * UNIT)
    return gains


def other_rankings(ranking: Ranking) -> dict[str, Ranking]:
    """The orders of hands that a mistake might put in the place of this one, by what is wrong in them.

    >>> brag = Paytable.load("paytables/three-card-brag.toml").ranking
    >>> list(other_rankings(brag))[:4]
    ['A-2-3 second', 'A-2-3 lowest', 'A-2-3 not_a_run', 'best prial A']
    """
    others = {
        f"A-2-3 {place}": replace(ranking, ace_low_run=place)
        for place in AceLowRun
        if place is not ranking.ace_low_run
    }
    for rank in sorted({"3", "A"} - {ranking.best_prial or "A"}):
        others[f"best prial {rank}"] = replace(ranking, best_prial=None if rank == "A" else rank)
    for place in range(1, len(ranking.categories)):
        order = list(ranking.categories)
        order[place - 1 : place + 1] = better, worse = order[place], order[place - 1]
        others[f"{worse} above {better}"] = replace(ranking, categories=tuple(order))
    return others


@dataclass(frozen=True, eq=False, slots=True)
class _Other:
    """The rules under another order of hands, and for which of the 22,100 hands that makes a difference."""

    rules: Rules
    differs: Bools


@lru_cache(maxsize=32)
def _others(paytable: Paytable) -> tuple[_Other, ...]:
    own = Rules.of(paytable)
    others = []
    for ranking in other_rankings(paytable.ranking).values():
        other = Rules.of(replace(paytable, ranking=ranking))
        differs = (own.ways_played != other.ways_played).any(axis=1) | (own.category != other.category)
        others.append(_Other(other, differs))
    return tuple(others)
