"""What the rules expect of rounds once the player's cards, the decision and the stakes are known; exact.

A player's skill moves the return to player by more than most faults do.  It has no part in the figures here: given
the hand and the decision, all that is left to chance is the dealer's hand, which is one of 18,424 whatever the player
knows and wants.  So the mean, the variance and the possible payouts of every single round are known exactly.

The main game is Ante, Play and Ante Bonus together.  The Pair Bonus depends on the player's cards and the decision
alone, so that its payout is certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Result, Spot, Stakes
from casino_brag.odds.outcomes import DEALER_HANDS, Integers, hand_places, outcomes
from casino_brag.odds.payoffs import MAIN, payoffs, whole_stakes

SCALE: Final = DEALER_HANDS
"""Expected payouts are whole numbers of 1/18,424 of a minor unit: one dealer's hand each."""

Exact = NDArray[np.object_]
"""Python's integers, of any size."""

Bools = NDArray[np.bool_]

_FOLD: Final = tuple(Result).index(Result.FOLD)
_WIN: Final = tuple(Result).index(Result.WIN)


@dataclass(frozen=True, eq=False)
class Rounds:
    """The payouts of many rounds, as the rules have them; every array has a row for each round.

    ``hands`` is the place of the player's hand among all 22,100.  ``ways`` says for how many of the 18,424 dealer's
    hands the round ends in each way, ``payouts`` what the main game then pays in minor units: both of shape
    (rounds, 5), by :class:`casino_brag.game.settlement.Result`.  ``bonus_due_minor`` is what the Pair Bonus pays.
    """

    hands: Integers
    plays: Bools
    ante_minor: Integers
    ways: Integers
    payouts: Integers
    bonus_due_minor: Integers

    def __len__(self) -> int:
        return len(self.hands)

    @cached_property
    def expected(self) -> Exact:
        """The main game's expected payouts, in minor units x ``SCALE``."""
        sums: Exact = (self.ways.astype(object) * self.payouts).sum(axis=1)
        return sums

    @cached_property
    def variance(self) -> Exact:
        """The main game's variances, in squared minor units x ``SCALE`` squared."""
        payouts = self.payouts.astype(object)
        variance: Exact = SCALE * (self.ways * payouts**2).sum(axis=1) - self.expected**2
        return variance

    def ways_to(self, main_paid_minor: Integers) -> Integers:
        """How many of the 18,424 dealer's hands lead to each of these payouts of the main game: none when it is
        impossible."""
        ways: Integers = np.where(self.payouts == main_paid_minor[:, np.newaxis], self.ways, 0).sum(axis=1)
        return ways


@dataclass(frozen=True, eq=False, slots=True)
class Rules:
    """A paytable, laid out so that rounds are looked up in it.

    ``category`` and ``kind`` are of each of the 22,100 hands (see :class:`casino_brag.odds.outcomes.Outcomes`);
    ``ways`` of each kind when it is folded, and then of each when it is played.
    """

    paytable: Paytable
    category: Integers
    kind: Integers
    ways: Integers

    @staticmethod
    def of(paytable: Paytable) -> Rules:
        """The rules of a paytable; some tens of milliseconds the first time."""
        return _rules(paytable)

    def rounds(
        self,
        player_cards: NDArray[np.integer[Any]],
        plays: Bools,
        ante_minor: Integers,
        pair_bonus_minor: Integers,
    ) -> Rounds:
        """Many rounds: card numbers 0..51 of shape (rounds, 3), in any order, and for each round whether it was
        played and what was staked.  Stakes are as the paytable allows them.

        >>> rules = Rules.of(Paytable.load("paytables/three-card-brag.toml"))
        >>> aces, stakes = np.array([[51, 50, 49]] * 2), np.array([100, 100])
        >>> rules.rounds(aces, np.array([True, False]), stakes, stakes).bonus_due_minor.tolist()
        [4100, 0]
        >>> queen_high = np.array([[43, 17, 8]])
        >>> rules.rounds(queen_high, np.array([True]), stakes[:1], stakes[:1]).expected[0] / SCALE
        100.66217976552323
        """
        hands = hand_places(player_cards)
        category = self.category[hands]
        ways = self.ways[self.kind[hands] + len(self.ways) // 2 * plays]
        payouts = self._payouts(Spot.ANTE, ante_minor, category)
        # The Pair Bonus is the same whatever the dealer holds, so any result of a played round will do.
        bonus = self._payouts(Spot.PAIR_BONUS, pair_bonus_minor, category)
        bonus_due = np.where(plays, bonus[:, _WIN], bonus[:, _FOLD])
        return Rounds(hands, plays, ante_minor, ways, payouts, bonus_due)

    @property
    def ways_played(self) -> Integers:
        """For each of the 22,100 hands, when it is played, for how many dealer's hands the round ends in each way."""
        ways: Integers = self.ways[self.kind + len(self.ways) // 2]
        return ways

    def _payouts(self, wager: Spot, stake_minor: Integers, category: Integers) -> Integers:
        """What each round's wager pays by result, the stake being that of the Ante or of the Pair Bonus.

        A stake is so many whole stakes, whose winnings are whole, and a rest that is below one.  Payouts of the
        former are in proportion; rounding down what the sum wins rounds down what the rest wins, and no more.
        """
        whole = whole_stakes(self.paytable)
        unit = max(1, whole.ante_minor if wager is Spot.ANTE else whole.pair_bonus_minor)
        times, rest = np.divmod(stake_minor, unit)
        payouts = np.zeros((len(category), len(Result)), dtype=np.int64)
        if times.any():
            payouts += times[:, np.newaxis] * _payout_table(self.paytable, wager, unit)[category]
        for stake in np.unique(rest[rest > 0]).tolist():
            rows = rest == stake
            payouts[rows] += _payout_table(self.paytable, wager, stake)[category[rows]]
        return payouts


@lru_cache(maxsize=32)
def _rules(paytable: Paytable) -> Rules:
    counted = outcomes(paytable.ranking, paytable.qualifier)
    kinds = len(counted.counts)
    played = np.insert(counted.counts, _FOLD, 0, axis=1)
    folded = np.zeros_like(played)
    folded[:, _FOLD] = SCALE
    ways = np.concatenate((folded, played))
    ways.setflags(write=False)
    assert len(ways) == 2 * kinds
    return Rules(paytable, counted.category[counted.kind], counted.kind, ways)


@lru_cache(maxsize=8192)
def _payout_table(paytable: Paytable, wager: Spot, stake_minor: int) -> Integers:
    """What the main game pays for this Ante, or the Pair Bonus for this stake: shape (6, 5), Category by Result."""
    whole = whole_stakes(paytable)
    if wager is Spot.ANTE:
        paid, spots = payoffs(paytable, Stakes(stake_minor)), MAIN
    else:
        paid, spots = payoffs(paytable, Stakes(whole.ante_minor, stake_minor)), frozenset({wager})
    table: Integers = (paid.net(spots) + paid.staked(spots)).astype(np.int64)
    table.setflags(write=False)
    return table
