"""What each way in which a round can end pays: settlement, tabulated once for a paytable and stakes.

A round's payouts depend on two facts, the player's category and the result, so thirty calls of
:func:`casino_brag.game.settlement.settle_outcome` say all there is to say about stakes.  Exact figures and
simulation count how often each of these thirty *endings* occurs, and read here what it is worth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd, lcm
from operator import add
from typing import Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import StakeRange
from casino_brag.game.settlement import Result, Spot, Stakes, settle_outcome

MAIN: Final = frozenset({Spot.ANTE, Spot.PLAY, Spot.ANTE_BONUS})
"""The spots of the main game."""

EVERY_SPOT: Final = frozenset(Spot)

SMALLEST_STAKES: Final = 5
"""How many of the smallest stakes are looked at where winnings are rounded: they lose the most."""

Amounts = NDArray[np.object_]
"""Minor units by ending, in Python's integers of any size: shape (6, 5), Category by Result."""


@dataclass(frozen=True, eq=False, slots=True)
class Payoffs:
    """What every ending nets and stakes on each spot."""

    stakes: Stakes
    net_on: Mapping[Spot, Amounts]
    staked_on: Mapping[Spot, Amounts]

    def net(self, spots: Collection[Spot] = EVERY_SPOT) -> Amounts:
        """What the player wins (below 0: loses) on some spots together.

        >>> payoffs(Paytable.load("paytables/three-card-brag.toml"), Stakes(100)).net()[-1].tolist()
        [-100, 600, 700, 500, 300]
        """
        return reduce(add, (self.net_on[spot] for spot in spots))

    def staked(self, spots: Collection[Spot] = EVERY_SPOT) -> Amounts:
        """What the player puts down on some spots together.

        >>> payoffs(Paytable.load("paytables/double-play-brag.toml"), Stakes(100)).staked()[0].tolist()
        [100, 300, 300, 300, 300]
        """
        return reduce(add, (self.staked_on[spot] for spot in spots))


def total(endings: NDArray[np.int64] | NDArray[np.object_], amounts: Amounts) -> int:
    """An amount summed over endings that occurred so often; exact, of equal shapes.

    >>> paid = payoffs(Paytable.load("paytables/three-card-brag.toml"), Stakes(100))
    >>> total(np.ones((6, 5), dtype=np.int64), paid.staked())
    5400
    """
    return int((endings * amounts).sum())


@lru_cache(maxsize=256)
def payoffs(paytable: Paytable, stakes: Stakes) -> Payoffs:
    """Settle every ending at these stakes.

    >>> payoffs(Paytable.load("paytables/three-card-brag.toml"), Stakes(100, 50)).staked_on[Spot.PAIR_BONUS][0, 0]
    50
    """
    shape = (len(Category), len(Result))
    net_on = {spot: np.zeros(shape, dtype=object) for spot in Spot}
    staked_on = {spot: np.zeros(shape, dtype=object) for spot in Spot}
    for row, category in enumerate(Category):
        for column, result in enumerate(Result):
            for wager in settle_outcome(paytable, stakes, category, result):
                net_on[wager.spot][row, column] = wager.payout_minor - wager.stake_minor
                staked_on[wager.spot][row, column] = wager.stake_minor
    for amounts in (*net_on.values(), *staked_on.values()):
        amounts.setflags(write=False)
    return Payoffs(stakes, net_on, staked_on)


@lru_cache(maxsize=256)
def whole_stakes(paytable: Paytable) -> Stakes:
    """The smallest stakes at which all odds give whole minor units, so that nothing is rounded.

    Without rounding all figures are in proportion to the stake, so these stand for every other.

    >>> whole_stakes(Paytable.load("paytables/three-card-brag.toml"))
    Stakes(ante_minor=1, pair_bonus_minor=1)
    """
    whole = {"ante": 1, "pair_bonus": 1 if paytable.pair_bonus else 0}
    for _, odds, wager in paytable.odds():
        whole[wager] = lcm(whole[wager], odds.denominator)
    return Stakes(whole["ante"], whole["pair_bonus"])


def telling_stakes(paytable: Paytable) -> tuple[list[int], list[int], bool]:
    """Antes and Pair Bonuses, in minor units, that show what rounding does: the smallest allowed and the largest.

    What is lost to rounding repeats from one whole stake to the next while the stake grows, so the stakes before
    the first repetition hold the highest house edge of all; the third value says whether all of these are there.

    >>> telling_stakes(Paytable.load("paytables/three-card-brag.toml"))[0][:3]
    [5, 10, 25]
    """
    whole = whole_stakes(paytable)
    antes, all_antes = _telling((limits.ante for limits in paytable.limits.values()), whole.ante_minor)
    bonuses, all_bonuses = _telling(
        (limits.pair_bonus for limits in paytable.limits.values() if limits.pair_bonus),
        whole.pair_bonus_minor,
    )
    return antes, bonuses, all_antes and all_bonuses


def _telling(ranges: Iterable[StakeRange], whole_minor: int) -> tuple[list[int], bool]:
    shown: set[int] = set()
    complete = True
    for stakes in ranges:
        allowed = range(stakes.min_minor, stakes.max_minor + 1, stakes.step_minor)
        repeats_after = whole_minor // gcd(whole_minor, stakes.step_minor)
        smallest = allowed[: min(repeats_after, SMALLEST_STAKES)]
        complete &= len(smallest) == len(allowed[:repeats_after])
        shown.update(smallest, allowed[-1:])
    return sorted(shown), complete
