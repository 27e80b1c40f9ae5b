"""The exact return of a paytable's wagers.

Two wager types are told apart.  The *main game* is the Ante with the Play and the Ante Bonus that belong to
it, played by the strategy of highest expectation.  The *Pair Bonus* stands by itself.  House edge is loss
over the Ante (or the Pair Bonus), element of risk is loss over all money staked, and RTP is 1 less the
element of risk; the first two have different denominators wherever a Play is staked.

Where a paytable rounds winnings down, true figures depend on the stake.  The figures here are then those
without rounding: no stake returns more, because rounding only takes away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import Category, all_hands
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Result, Stakes, settle_outcome
from casino_brag.odds.outcomes import DEALER_HANDS, DEALS, HANDS, PLAYED_RESULTS, Integers, outcomes

Decisions = NDArray[np.bool_]
"""A strategy: for each of the 22,100 hands, in the order of ``all_hands``, whether it is played."""


@dataclass(frozen=True, slots=True)
class MainGame:
    """Ante, Play and Ante Bonus over all 407,170,400 deals, in Antes.

    ``net_distribution`` counts deals by what the player wins (below 0: loses); ``lowest_hand_played`` is the
    shape of the weakest hand the strategy plays, None when it folds everything; ``is_rank_threshold`` says
    whether it plays exactly the hands from that one up.
    """

    net_distribution: Mapping[Fraction, int]
    total_staked_antes: Fraction
    hands_played: int
    lowest_hand_played: str | None
    is_rank_threshold: bool

    @property
    def deals(self) -> int:
        """All deals: 407,170,400."""
        return sum(self.net_distribution.values())

    @property
    def net_antes(self) -> Fraction:
        """What the player wins over all deals."""
        return sum((net * deals for net, deals in self.net_distribution.items()), Fraction(0))

    @property
    def rtp(self) -> Fraction:
        """All that is returned over all that is staked, the Play included."""
        return 1 - self.element_of_risk

    @property
    def element_of_risk(self) -> Fraction:
        """Expected loss over all that is staked."""
        return -self.net_antes / self.total_staked_antes

    @property
    def house_edge(self) -> Fraction:
        """Expected loss over the Ante."""
        return -self.net_antes / self.deals

    @property
    def variance(self) -> Fraction:
        """Variance of the net of one round, in squared Antes."""
        square = sum((net**2 * deals for net, deals in self.net_distribution.items()), Fraction(0))
        return square / self.deals - self.house_edge**2


@dataclass(frozen=True, slots=True)
class PairBonusGame:
    """The Pair Bonus over all 22,100 hands, in units of its stake, settled on every one of them.

    Where the rules take it on a fold it returns less, by as much as the player folds paying hands.
    """

    net_distribution: Mapping[Fraction, int]

    @property
    def hands(self) -> int:
        """All hands: 22,100."""
        return sum(self.net_distribution.values())

    @property
    def net(self) -> Fraction:
        """What the player wins over all hands."""
        return sum((net * hands for net, hands in self.net_distribution.items()), Fraction(0))

    @property
    def rtp(self) -> Fraction:
        """All that is returned over all that is staked."""
        return 1 - self.house_edge

    @property
    def house_edge(self) -> Fraction:
        """Expected loss over the stake."""
        return -self.net / self.hands

    @property
    def hit_frequency(self) -> Fraction:
        """Probability that more is returned than was staked."""
        return Fraction(sum(hands for net, hands in self.net_distribution.items() if net > 0), self.hands)

    @property
    def variance(self) -> Fraction:
        """Variance of the net of one wager, in squared stakes."""
        square = sum((net**2 * hands for net, hands in self.net_distribution.items()), Fraction(0))
        return square / self.hands - self.house_edge**2


def main_game(paytable: Paytable) -> MainGame:
    """The main game under the strategy of highest expectation: play a hand exactly when playing is worth more
    than folding.  Where both are worth the same it folds, which stakes less.

    >>> game = main_game(Paytable.load("paytables/three-card-brag.toml"))
    >>> game.net_antes, game.hands_played, game.lowest_hand_played
    (Fraction(-13660084, 1), 14900, 'Q-6-4')
    >>> f"{float(game.rtp):.6%}"
    '97.996138%'
    """
    return strategy_figures(paytable, best_decisions(paytable))


def best_decisions(paytable: Paytable) -> Decisions:
    """The strategy of highest expectation.

    >>> int(best_decisions(Paytable.load("paytables/double-play-brag.toml")).sum())
    12740
    """
    counted = outcomes(paytable.ranking, paytable.qualifier)
    ante_minor = whole_ante_minor(paytable)
    plays = np.zeros(HANDS, dtype=np.bool_)
    for position, category in enumerate(Category):
        rows = counted.category == position
        # Python's integers: odds and a common denominator together may exceed 64 bits.
        net = [_settled(paytable, ante_minor, category, result)[0] for result in PLAYED_RESULTS]
        worth = counted.counts[rows].astype(object) @ np.array(net, dtype=object)
        plays[rows] = worth > DEALER_HANDS * _settled(paytable, ante_minor, category, Result.FOLD)[0]
    return plays


def strategy_figures(paytable: Paytable, plays: Decisions) -> MainGame:
    """The main game under any strategy.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> always = strategy_figures(paytable, np.ones(HANDS, dtype=np.bool_))
    >>> always.total_staked_antes / always.deals
    Fraction(2, 1)
    """
    counted = outcomes(paytable.ranking, paytable.qualifier)
    ante_minor = whole_ante_minor(paytable)
    distribution: Counter[Fraction] = Counter()
    staked_minor = 0
    for position, category in enumerate(Category):
        rows = counted.category == position
        played: Integers = counted.counts[rows & plays].sum(axis=0)
        folded = int((rows & ~plays).sum()) * DEALER_HANDS
        deals = dict(zip(PLAYED_RESULTS, played.tolist(), strict=True)) | {Result.FOLD: folded}
        for result, count in deals.items():
            net, staked = _settled(paytable, ante_minor, category, result)
            if count:
                distribution[Fraction(net, ante_minor)] += count
                staked_minor += staked * count
    played_classes, folded_classes = counted.rank_class[plays], counted.rank_class[~plays]
    lowest = int(played_classes.min()) if played_classes.size else None
    figures = MainGame(
        net_distribution=dict(sorted(distribution.items())),
        total_staked_antes=Fraction(staked_minor, ante_minor),
        hands_played=int(plays.sum()),
        lowest_hand_played=None if lowest is None else _shape_text(counted.rank_class, lowest),
        is_rank_threshold=lowest is None or not bool((folded_classes >= lowest).any()),
    )
    assert figures.deals == DEALS, "every deal is counted once"
    return figures


def pair_bonus_game(paytable: Paytable) -> PairBonusGame | None:
    """The Pair Bonus by itself; None when the game has none.

    >>> pair_bonus = pair_bonus_game(Paytable.load("paytables/three-card-brag.toml"))
    >>> pair_bonus.net, pair_bonus.rtp
    (Fraction(-472, 1), Fraction(5407, 5525))
    """
    if paytable.pair_bonus is None:
        return None
    stake_minor = lcm(*(odds.denominator for odds in paytable.pair_bonus.pays.values()))
    stakes = Stakes(whole_ante_minor(paytable), stake_minor)
    hands = np.bincount(
        outcomes(paytable.ranking, paytable.qualifier).category, minlength=len(Category)
    ).tolist()
    distribution: Counter[Fraction] = Counter()
    for category, count in zip(Category, hands, strict=True):
        # The same whatever the dealer holds, so any result of a played round will do.
        wager = settle_outcome(paytable, stakes, category, Result.NOT_QUALIFIED)[-1]
        distribution[Fraction(wager.payout_minor - stake_minor, stake_minor)] += count
    return PairBonusGame(dict(sorted(distribution.items())))


def player_favouring(paytable: Paytable) -> dict[str, str]:
    """What in a paytable returns more than is staked: a sentence by the key to look at; empty when nothing does.

    The main game is judged under the strategy of highest expectation, the Pair Bonus as if it were settled on
    every hand.  No way of playing both does better than these two together: whatever a player decides, the
    main game is worth at most its highest expectation, the Pair Bonus at most what it is worth when no fold
    loses it, and expectations add although the wagers are not independent.  So if neither favours the player,
    no mix of stakes and decisions does.  Rounding down only lowers payouts, so the unrounded figures judged
    here bound it too.

    >>> player_favouring(Paytable.load("paytables/double-play-brag.toml"))
    {}
    """
    pair_bonus = pair_bonus_game(paytable)
    figures = {"play.pays": ("the main game", main_game(paytable).rtp)}
    if pair_bonus is not None:
        figures["pair_bonus.pays"] = ("the Pair Bonus", pair_bonus.rtp)
    return {
        key: f"{wager} returns {float(rtp):.6%} of the money staked ({rtp}): it must not exceed 100 %"
        for key, (wager, rtp) in figures.items()
        if rtp > 1
    }


def whole_ante_minor(paytable: Paytable) -> int:
    """An Ante on which all odds give whole minor units, so that nothing is rounded.

    >>> whole_ante_minor(Paytable.load("paytables/three-card-brag.toml"))
    1
    """
    bonus_odds = paytable.ante_bonus.pays.values() if paytable.ante_bonus else ()
    odds = (paytable.ante_pays, *paytable.play_pays.values(), *bonus_odds)
    return lcm(*(value.denominator for value in odds))


def _settled(paytable: Paytable, ante_minor: int, category: Category, result: Result) -> tuple[int, int]:
    """(net, staked) of the main game for one outcome, in minor units."""
    wagers = settle_outcome(paytable, Stakes(ante_minor), category, result)
    staked = sum(wager.stake_minor for wager in wagers)
    return sum(wager.payout_minor for wager in wagers) - staked, staked


def _shape_text(rank_class: Integers, wanted: int) -> str:
    row = int(np.flatnonzero(rank_class == wanted)[0])
    return str(all_hands()[row].shape)
