"""The exact return of a paytable's wagers.

Two wager types are told apart.  The *main game* is the Ante with the Play and the Ante Bonus that belong to
it.  The *Pair Bonus* stands by itself.  House edge is loss over the Ante (or the Pair Bonus), element of risk
is loss over all money staked, and RTP is 1 less the element of risk; the first two have different denominators
wherever a Play is staked.

Where a paytable rounds winnings down, true figures depend on the stake.  Functions that take stakes give the
figures at these; without stakes they give those without rounding.  No stake has a lower house edge than that,
because rounding only takes away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, sqrt

import numpy as np

from casino_brag.game.hands import Category, places
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Result, Spot, Stakes
from casino_brag.odds.outcomes import DEALS, Integers, outcomes
from casino_brag.odds.payoffs import EVERY_SPOT, MAIN, Payoffs, payoffs, total, whole_stakes
from casino_brag.odds.strategies import MAX_EXPECTATION, Decisions, best_decisions, count_endings


@dataclass(frozen=True, slots=True)
class Returns:
    """What one or more wagers together return over all deals (or hands).

    ``nets_minor`` counts deals by what the player wins (below 0: loses); ``pushes`` counts those in which all
    that was staked came back and no more.  Both, and ``staked_minor`` over all deals, are for a stake of
    ``unit_minor``; properties give amounts in such units: Antes, or for the Pair Bonus its own stake.
    """

    unit_minor: int
    nets_minor: Mapping[int, int]
    staked_minor: int
    pushes: int

    @property
    def deals(self) -> int:
        """How many deals were counted: 407,170,400, or 22,100 hands for the Pair Bonus by itself."""
        return sum(self.nets_minor.values())

    @property
    def net(self) -> Fraction:
        """What the player wins over all deals."""
        return Fraction(self._power_sum(1), self.unit_minor)

    @property
    def staked(self) -> Fraction:
        """What the player puts down over all deals."""
        return Fraction(self.staked_minor, self.unit_minor)

    @property
    def net_distribution(self) -> dict[Fraction, int]:
        """Deals by what the player wins in one, from the largest loss up."""
        return {Fraction(net, self.unit_minor): deals for net, deals in sorted(self.nets_minor.items())}

    @property
    def rtp(self) -> Fraction:
        """All that is returned over all that is staked."""
        return 1 - self.element_of_risk

    @property
    def element_of_risk(self) -> Fraction:
        """Expected loss over all that is staked."""
        return -self.net / self.staked

    @property
    def house_edge(self) -> Fraction:
        """Expected loss over the Ante (or the Pair Bonus)."""
        return -self.net / self.deals

    @property
    def hit_frequency(self) -> Fraction:
        """Probability that more is returned than was staked."""
        return Fraction(sum(deals for net, deals in self.nets_minor.items() if net > 0), self.deals)

    @property
    def push_frequency(self) -> Fraction:
        """Probability that exactly what was staked is returned."""
        return Fraction(self.pushes, self.deals)

    @property
    def variance(self) -> Fraction:
        """Variance of the net of one round, in squared units."""
        return self._central_moment(2)

    @property
    def sd(self) -> float:
        """Standard deviation of the net of one round, in units; for show."""
        return sqrt(self.variance)

    @property
    def skewness(self) -> float:
        """Third standardised moment of the net of one round; for show.  0 where nothing varies."""
        sd = self.sd
        return float(self._central_moment(3)) / sd**3 if sd else 0.0

    def _power_sum(self, power: int) -> int:
        return sum(net**power * deals for net, deals in self.nets_minor.items())

    def _central_moment(self, power: int) -> Fraction:
        deals, net = self.deals, self._power_sum(1)
        scaled = sum((deals * value - net) ** power * count for value, count in self.nets_minor.items())
        return Fraction(scaled, deals ** (power + 1) * self.unit_minor**power)


def returns(
    paytable: Paytable, spots: Collection[Spot], plays: Decisions, stakes: Stakes | None = None
) -> Returns:
    """What some spots together return over all 407,170,400 deals under any decisions, in units of the Ante.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> bonus = returns(paytable, {Spot.ANTE_BONUS}, MAX_EXPECTATION.decisions(paytable))
    >>> bonus.net / bonus.deals
    Fraction(293, 5525)
    """
    paid = payoffs(paytable, stakes or whole_stakes(paytable))
    endings = count_endings(outcomes(paytable.ranking, paytable.qualifier), plays)
    assert endings.sum() == DEALS, "every deal is counted once"
    return _returns(endings, paid, spots, paid.stakes.ante_minor)


def main_game(paytable: Paytable, plays: Decisions | None = None, stakes: Stakes | None = None) -> Returns:
    """Ante, Play and Ante Bonus over all deals, in Antes; played for the highest expectation unless told how.

    >>> game = main_game(Paytable.load("paytables/three-card-brag.toml"))
    >>> game.net, f"{float(game.rtp):.6%}"
    (Fraction(-13660084, 1), '97.996138%')
    """
    return returns(
        paytable, MAIN, MAX_EXPECTATION.decisions(paytable, stakes) if plays is None else plays, stakes
    )


def pair_bonus_game(paytable: Paytable, stakes: Stakes | None = None) -> Returns | None:
    """The Pair Bonus by itself over all 22,100 hands, in units of its stake; None when the game has none.

    It is settled on every hand.  Where the rules take it on a fold it returns less, by as much as the player
    folds paying hands.

    >>> pair_bonus = pair_bonus_game(Paytable.load("paytables/three-card-brag.toml"))
    >>> pair_bonus.net, pair_bonus.rtp
    (Fraction(-472, 1), Fraction(5407, 5525))
    """
    if paytable.pair_bonus is None:
        return None
    paid = payoffs(paytable, stakes or whole_stakes(paytable))
    # The same whatever the dealer holds, so any result of a played round will do.
    endings = np.zeros((len(Category), len(Result)), dtype=np.int64)
    endings[:, tuple(Result).index(Result.WIN)] = hands_by_category(paytable)
    return _returns(endings, paid, {Spot.PAIR_BONUS}, paid.stakes.pair_bonus_minor)


@dataclass(frozen=True, slots=True)
class Combined:
    """An Ante and a Pair Bonus of one size, both staked in every round.

    ``plays`` are the decisions best for both together; they differ from the main game's where a fold would lose
    a Pair Bonus that is worth more than the Play risks.  ``returns`` is in units of the Ante, ``covariance`` of
    the two nets in squared units; ``correlation`` is the same on a scale of -1 to 1, for show.
    """

    plays: Decisions
    returns: Returns
    covariance: Fraction
    correlation: float


def combined_game(paytable: Paytable) -> Combined | None:
    """Main game and Pair Bonus together; None when the game has no Pair Bonus.

    The two depend on the same cards, so their variances must not be added.

    >>> f"{float(combined_game(Paytable.load('paytables/three-card-brag.toml')).covariance):.6f}"
    '2.357491'
    """
    if paytable.pair_bonus is None:
        return None
    whole = whole_stakes(paytable)
    unit = lcm(whole.ante_minor, whole.pair_bonus_minor)
    stakes = Stakes(unit, unit)
    paid = payoffs(paytable, stakes)
    counted = outcomes(paytable.ranking, paytable.qualifier)
    plays = best_decisions(counted, paid.net())
    main, bonus = (returns(paytable, spots, plays, stakes) for spots in (MAIN, {Spot.PAIR_BONUS}))
    products = paid.net(MAIN) * paid.net({Spot.PAIR_BONUS})
    product = Fraction(total(count_endings(counted, plays), products), DEALS * unit**2)
    covariance = product - main.house_edge * bonus.house_edge
    spread = main.sd * bonus.sd
    return Combined(
        plays,
        returns(paytable, EVERY_SPOT, plays, stakes),
        covariance,
        float(covariance) / spread if spread else 0.0,
    )


def rtp_sd(paytable: Paytable, plays: Decisions) -> float:
    """Standard deviation of the main game's observed RTP after one round; over n rounds divide by the root of n.

    RTP is a ratio of two sums that vary together, so it spreads like net + element of risk x staked, over the
    average stake (W. G. Cochran, Sampling Techniques, 3rd edition, section 6.3).  For show.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> f"{rtp_sd(paytable, MAX_EXPECTATION.decisions(paytable)):.4f}"
    '0.9818'
    """
    paid = payoffs(paytable, whole_stakes(paytable))
    net, staked = paid.net(MAIN), paid.staked(MAIN)
    endings = count_endings(outcomes(paytable.ranking, paytable.qualifier), plays)
    won, put_down = total(endings, net), total(endings, staked)
    squares = (put_down * net - won * staked) ** 2
    return sqrt(Fraction(total(endings, squares) * DEALS, put_down**4))


@dataclass(frozen=True, slots=True)
class Played:
    """The hands that are played.

    ``hands`` is of 22,100; ``lowest`` is the shape of the weakest of them, None when all are folded;
    ``is_rank_threshold`` says whether they are exactly the hands from that one up.
    """

    hands: int
    lowest: str | None
    is_rank_threshold: bool


def played(paytable: Paytable, plays: Decisions) -> Played:
    """What can be said of decisions in a few words.

    >>> paytable = Paytable.load("paytables/double-play-brag.toml")
    >>> played(paytable, MAX_EXPECTATION.decisions(paytable))
    Played(hands=12740, lowest='K-3-2', is_rank_threshold=True)
    """
    counted = outcomes(paytable.ranking, paytable.qualifier)
    hands = int(counted.hands @ plays)
    if not hands:
        return Played(0, None, is_rank_threshold=True)
    lowest = int(counted.rank_class[plays].min())
    shape = list(places(paytable.ranking))[lowest - 1]
    return Played(hands, str(shape), not bool((counted.rank_class[~plays] >= lowest).any()))


def hands_by_category(paytable: Paytable) -> list[int]:
    """How many of the 22,100 hands are of each category, in the order of Category.

    >>> hands_by_category(Paytable.load("paytables/three-card-brag.toml"))
    [16440, 3744, 1096, 720, 48, 52]
    """
    counted = outcomes(paytable.ranking, paytable.qualifier)
    return [int(counted.hands[counted.category == position].sum()) for position in range(len(Category))]


def best_returns(paytable: Paytable) -> dict[str, tuple[str, Fraction]]:
    """What each type of wager is called and returns of what is staked on it, by the key to look at.

    The main game is judged under the strategy of highest expectation, the Pair Bonus as if it were settled on
    every hand.  No way of playing both does better than these two together: whatever a player decides, the
    main game is worth at most its highest expectation, the Pair Bonus at most what it is worth when no fold
    loses it, and expectations add although the wagers are not independent.  So if neither favours the player,
    no mix of stakes and decisions does.  Rounding down only lowers payouts, so the unrounded figures judged
    here bound it too.

    >>> best_returns(Paytable.load("paytables/double-play-brag.toml"))["pair_bonus.pays"]
    ('the Pair Bonus', Fraction(5407, 5525))
    """
    found = {"play.pays": ("the main game", main_game(paytable).rtp)}
    if (pair_bonus := pair_bonus_game(paytable)) is not None:
        found["pair_bonus.pays"] = ("the Pair Bonus", pair_bonus.rtp)
    return found


def player_favouring(paytable: Paytable) -> dict[str, str]:
    """What returns more than is staked, by `best_returns`: a sentence by the key to look at; empty when nothing does.

    >>> player_favouring(Paytable.load("paytables/double-play-brag.toml"))
    {}
    """
    return {
        key: f"{wager} returns {float(rtp):.6%} of the money staked ({rtp}): it must not exceed 100 %"
        for key, (wager, rtp) in best_returns(paytable).items()
        if rtp > 1
    }


def _returns(endings: Integers, paid: Payoffs, spots: Collection[Spot], unit_minor: int) -> Returns:
    net, staked = paid.net(spots), paid.staked(spots)
    nets: Counter[int] = Counter()
    for minor, deals in zip(net.ravel().tolist(), endings.ravel().tolist(), strict=True):
        if deals:
            nets[minor] += deals
    pushes = int(endings[(net == 0) & (staked > 0)].sum())
    return Returns(unit_minor, nets, total(endings, staked), pushes)
