"""What a round pays.  The one place that knows; play, odds, simulation, recall and replay all call it.

A round is settled in two steps.  :func:`settle` looks at the cards, which leaves two facts that matter: the
player's category and the :class:`Result`.  :func:`settle_outcome` turns these into payouts and knows no
cards, so that exact odds, which count outcomes, use the very same rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from casino_brag.game.hands import Category, Hand, Ranking, Shape, places
from casino_brag.game.rules import BonusPaid, OnFold, Qualifier, Rounding, TieResult, Unqualified

if TYPE_CHECKING:
    from casino_brag.game.paytable import Paytable


class Decision(StrEnum):
    """The player's one choice."""

    PLAY = "play"
    """Stake the Play and meet the dealer."""

    FOLD = "fold"
    """Give up the Ante."""


class Result(StrEnum):
    """How a round ended."""

    FOLD = "fold"
    """The player folded; the cards were not compared."""

    NOT_QUALIFIED = "not_qualified"
    """The player played and the dealer's hand was too weak to count, even where it was the better one."""

    WIN = "win"
    """The player's hand beat a qualified dealer."""

    TIE = "tie"
    """Equal hands and a qualified dealer, whoever has the wagers under the rules."""

    LOSE = "lose"
    """A qualified dealer's hand beat the player."""


class Spot(StrEnum):
    """A place on the layout where money lies or is paid."""

    ANTE = "ante"
    """Staked before the deal."""

    PLAY = "play"
    """Staked by playing on: a multiple of the Ante."""

    ANTE_BONUS = "ante_bonus"
    """Extra pay on the Ante; has no stake of its own."""

    PAIR_BONUS = "pair_bonus"
    """Staked before the deal on the player's own cards."""


class Reason(StrEnum):
    """Why a wager ended as it did; stake and payout beside it say whether it won, lost or was returned."""

    FOLDED = "folded"
    """The player folded: the wager is lost."""

    DEALER_NOT_QUALIFIED = "dealer_not_qualified"
    """The dealer did not qualify: paid or returned, as the rules say."""

    BEAT_DEALER = "beat_dealer"
    """The player's hand is better: paid."""

    BEATEN_BY_DEALER = "beaten_by_dealer"
    """The dealer's hand is better: lost."""

    TIE_RETURNED = "tie_returned"
    """Equal hands, and the rules return the wager."""

    TIE_TO_DEALER = "tie_to_dealer"
    """Equal hands, and the rules give ties to the dealer: lost."""

    TIE_TO_PLAYER = "tie_to_player"
    """Equal hands, and the rules give ties to the player: paid."""

    PAYING_CATEGORY = "paying_category"
    """The player's category is on the bonus's pay table: paid."""

    NO_PAYING_CATEGORY = "no_paying_category"
    """The player's category is not on the bonus's pay table: lost."""


@dataclass(frozen=True, slots=True)
class Stakes:
    """What is staked before the deal, in minor units; a Pair Bonus of 0 is none.

    >>> Stakes(ante_minor=100)
    Stakes(ante_minor=100, pair_bonus_minor=0)
    """

    ante_minor: int
    pair_bonus_minor: int = 0

    def __post_init__(self) -> None:
        assert self.ante_minor > 0, "an ante is above 0"
        assert self.pair_bonus_minor >= 0, "a pair bonus is 0 or above"


@dataclass(frozen=True, slots=True)
class Deal:
    """The two hands of a round, which share no card.

    >>> str(Deal(Hand.parse("As Kd 2c"), Hand.parse("7h 7s 9d")))
    'As Kd 2c against 9d 7h 7s'
    """

    player: Hand
    dealer: Hand

    def __post_init__(self) -> None:
        assert len({*self.player, *self.dealer}) == 6, f"a card was dealt twice: {self}"

    def __str__(self) -> str:
        return f"{self.player} against {self.dealer}"


@dataclass(frozen=True, slots=True)
class WagerResult:
    """How one spot ended.  The payout includes the stake where that is returned."""

    spot: Spot
    stake_minor: int
    payout_minor: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Settlement:
    """How a round ended: every wager in the order Ante, Play, Ante Bonus, Pair Bonus.

    The Play is there only when the player played, the Ante Bonus only when it pays, the Pair Bonus only when
    it was staked.  ``dealer_category`` and ``dealer_qualified`` are facts of the deal, after a fold too.
    """

    decision: Decision
    result: Result
    player_category: Category
    dealer_category: Category
    dealer_qualified: bool
    wagers: tuple[WagerResult, ...]

    @property
    def total_staked_minor(self) -> int:
        """Everything the player put down, the Play included."""
        return sum(wager.stake_minor for wager in self.wagers)

    @property
    def total_payout_minor(self) -> int:
        """Everything the player gets back, returned stakes included."""
        return sum(wager.payout_minor for wager in self.wagers)

    @property
    def net_minor(self) -> int:
        """Payout less stakes: below 0 when the player lost money."""
        return self.total_payout_minor - self.total_staked_minor

    @property
    def celebrate(self) -> bool:
        """Whether the round may be shown as a win: only when more came back than was staked."""
        return self.net_minor > 0


def settle(paytable: Paytable, stakes: Stakes, deal: Deal, decision: Decision) -> Settlement:
    """Settle one round.

    >>> from casino_brag.game.paytable import Paytable
    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> deal = Deal(Hand.parse("Qs Qd 4c"), Hand.parse("Ah 9s 6d"))
    >>> settlement = settle(paytable, Stakes(100, 50), deal, Decision.PLAY)
    >>> settlement.result.value, settlement.total_staked_minor, settlement.total_payout_minor
    ('win', 250, 500)
    """
    place_of = places(paytable.ranking)
    player, dealer = place_of[deal.player.shape], place_of[deal.dealer.shape]
    qualified = dealer.rank_class >= qualifying_class(paytable.ranking, paytable.qualifier)
    if decision is Decision.FOLD:
        result = Result.FOLD
    elif not qualified:
        result = Result.NOT_QUALIFIED
    else:
        result = _compare(player.rank_class, dealer.rank_class)
    wagers = settle_outcome(paytable, stakes, player.category, result)
    return Settlement(decision, result, player.category, dealer.category, qualified, wagers)


def settle_outcome(
    paytable: Paytable, stakes: Stakes, player_category: Category, result: Result
) -> tuple[WagerResult, ...]:
    """Every wager of a round that ended with this result for a player who holds this category.

    Limits are not looked at; they are checked before the deal.

    >>> from casino_brag.game.paytable import Paytable
    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> for wager in settle_outcome(paytable, Stakes(100), Category.RUN, Result.LOSE):
    ...     print(wager.spot, wager.stake_minor, wager.payout_minor, wager.reason)
    ante 100 0 beaten_by_dealer
    play 100 0 beaten_by_dealer
    ante_bonus 0 100 paying_category
    """
    wagers = [_ante(paytable, stakes, result)]
    if result is not Result.FOLD:
        wagers.append(_play(paytable, stakes, player_category, result))
        wagers.extend(_ante_bonus(paytable, stakes, player_category, result))
    wagers.extend(_pair_bonus(paytable, stakes, player_category, result))
    return tuple(wagers)


def play_stake_minor(paytable: Paytable, stakes: Stakes) -> int:
    """What playing costs, in minor units.

    >>> from casino_brag.game.paytable import Paytable
    >>> play_stake_minor(Paytable.load("paytables/double-play-brag.toml"), Stakes(100))
    200
    """
    return paytable.play_multiple * stakes.ante_minor


@lru_cache(maxsize=4096)
def maximum_payout_minor(paytable: Paytable, stakes: Stakes) -> int:
    """The largest total payout these stakes can have, over all deals and both decisions; exact.

    >>> from casino_brag.game.paytable import Paytable
    >>> maximum_payout_minor(Paytable.load("paytables/three-card-brag.toml"), Stakes(100, 100))
    5000
    """
    return max(
        sum(wager.payout_minor for wager in settle_outcome(paytable, stakes, category, result))
        for category, result in possible_outcomes(paytable.ranking, paytable.qualifier)
    )


@lru_cache(maxsize=64)
def qualifying_class(ranking: Ranking, qualifier: Qualifier) -> int:
    """The lowest rank class with which the dealer qualifies: that of the weakest pair, or of the weakest high
    card headed by the qualifier's rank.

    >>> from casino_brag.game.hands import AceLowRun
    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> [qualifying_class(brag, qualifier) for qualifier in (Qualifier.ANY, Qualifier.QUEEN, Qualifier.PAIR)]
    [1, 113, 275]
    """
    place_of = places(ranking)
    match qualifier:
        case Qualifier.ANY:
            return 1
        case Qualifier.PAIR:
            return min(place.rank_class for place in place_of.values() if place.category is Category.PAIR)
        case _:
            return min(
                place.rank_class
                for shape, place in place_of.items()
                if place.category is Category.HIGH_CARD and str(shape).startswith(qualifier)
            )


@lru_cache(maxsize=64)
def possible_outcomes(ranking: Ranking, qualifier: Qualifier) -> frozenset[tuple[Category, Result]]:
    """Every (player's category, result) that some deal and decision lead to.

    >>> from casino_brag.game.hands import AceLowRun
    >>> brag = Ranking(tuple(Category), best_prial="3", ace_low_run=AceLowRun.HIGHEST)
    >>> outcomes = possible_outcomes(brag, Qualifier.QUEEN)
    >>> (Category.PRIAL, Result.TIE) in outcomes, (Category.PRIAL, Result.LOSE) in outcomes
    (False, True)
    """
    shapes = [(shape, place.category) for shape, place in places(ranking).items()]
    threshold = qualifying_class(ranking, qualifier)
    found = {(category, Result.FOLD) for category in Category}
    for rank_class, (player, category) in enumerate(shapes, start=1):
        weaker = shapes[threshold - 1 : rank_class - 1]
        equal = shapes[max(threshold, rank_class) - 1 : rank_class]
        better = shapes[max(threshold, rank_class + 1) - 1 :]
        dealers = {
            Result.NOT_QUALIFIED: shapes[: threshold - 1],
            Result.WIN: weaker,
            Result.TIE: equal,
            Result.LOSE: better,
        }
        for result, against in dealers.items():
            if (category, result) not in found and any(
                _fit_one_pack(player, dealer) for dealer, _ in against
            ):
                found.add((category, result))
    return frozenset(found)


def _fit_one_pack(player: Shape, dealer: Shape) -> bool:
    """Whether one pack holds two such hands: suits can be chosen unless a rank is needed five times."""
    ranks = player.ranks + dealer.ranks
    return all(ranks.count(rank) <= 4 for rank in player.ranks)


def _compare(player_class: int, dealer_class: int) -> Result:
    if player_class == dealer_class:
        return Result.TIE
    return Result.WIN if player_class > dealer_class else Result.LOSE


def _ante(paytable: Paytable, stakes: Stakes, result: Result) -> WagerResult:
    stake_minor, unqualified = stakes.ante_minor, paytable.not_qualified.ante
    ending = _against_dealer(paytable, result, stake_minor, paytable.ante_pays, unqualified)
    return WagerResult(Spot.ANTE, stake_minor, *ending)


def _play(paytable: Paytable, stakes: Stakes, category: Category, result: Result) -> WagerResult:
    stake_minor, unqualified = play_stake_minor(paytable, stakes), paytable.not_qualified.play
    ending = _against_dealer(paytable, result, stake_minor, paytable.play_pays[category], unqualified)
    return WagerResult(Spot.PLAY, stake_minor, *ending)


def _against_dealer(
    paytable: Paytable, result: Result, stake_minor: int, odds: Fraction, unqualified: Unqualified
) -> tuple[int, Reason]:
    """Payout and reason of a wager that meets the dealer: paid at its odds, returned, or lost."""
    lost, returned = 0, stake_minor
    paid = stake_minor + _winnings_minor(paytable, stake_minor, odds)
    match result:
        case Result.FOLD:
            return lost, Reason.FOLDED
        case Result.NOT_QUALIFIED:
            return paid if unqualified is Unqualified.WINS else returned, Reason.DEALER_NOT_QUALIFIED
        case Result.WIN:
            return paid, Reason.BEAT_DEALER
        case Result.LOSE:
            return lost, Reason.BEATEN_BY_DEALER
        case Result.TIE:
            return {
                TieResult.PUSH: (returned, Reason.TIE_RETURNED),
                TieResult.DEALER: (lost, Reason.TIE_TO_DEALER),
                TieResult.PLAYER: (paid, Reason.TIE_TO_PLAYER),
            }[paytable.tie]


_BONUS_RESULTS = {
    BonusPaid.ALWAYS: frozenset({Result.NOT_QUALIFIED, Result.WIN, Result.TIE, Result.LOSE}),
    BonusPaid.NOT_BEATEN: frozenset({Result.NOT_QUALIFIED, Result.WIN, Result.TIE}),
    BonusPaid.WIN: frozenset({Result.NOT_QUALIFIED, Result.WIN}),
}


def _ante_bonus(
    paytable: Paytable, stakes: Stakes, category: Category, result: Result
) -> Iterator[WagerResult]:
    bonus = paytable.ante_bonus
    if bonus is None or category not in bonus.pays or result not in _BONUS_RESULTS[bonus.paid]:
        return
    payout = _winnings_minor(paytable, stakes.ante_minor, bonus.pays[category])
    if payout > 0:  # rounding can leave nothing
        yield WagerResult(Spot.ANTE_BONUS, 0, payout, Reason.PAYING_CATEGORY)


def _pair_bonus(
    paytable: Paytable, stakes: Stakes, category: Category, result: Result
) -> Iterator[WagerResult]:
    bonus, stake_minor = paytable.pair_bonus, stakes.pair_bonus_minor
    if stake_minor == 0:
        return
    assert bonus is not None, f"{paytable.game} has no pair bonus to stake on"
    if result is Result.FOLD and bonus.on_fold is OnFold.LOST:
        yield WagerResult(Spot.PAIR_BONUS, stake_minor, 0, Reason.FOLDED)
    elif category in bonus.pays:
        payout = stake_minor + _winnings_minor(paytable, stake_minor, bonus.pays[category])
        yield WagerResult(Spot.PAIR_BONUS, stake_minor, payout, Reason.PAYING_CATEGORY)
    else:
        yield WagerResult(Spot.PAIR_BONUS, stake_minor, 0, Reason.NO_PAYING_CATEGORY)


def _winnings_minor(paytable: Paytable, stake_minor: int, odds: Fraction) -> int:
    """Stake x odds; parts of a minor unit stay with the house where the rules round down, and else there are
    none, which the paytable was checked for.
    """
    winnings, part = divmod(stake_minor * odds.numerator, odds.denominator)
    assert part == 0 or paytable.rounding is Rounding.DOWN, f"{stake_minor} at {odds} to 1 is not whole"
    return winnings
