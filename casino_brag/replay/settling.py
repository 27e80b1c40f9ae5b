"""Settlement of many rounds at a time: the one settlement, asked once for each ending that occurs.

A hand's rank class is looked up for whole columns of cards.  What an ending pays is not computed here: it comes from
:func:`casino_brag.game.settlement.settle_outcome`, for the smallest stakes that are paid in whole units and multiplied
from there, and for a round's own stakes where these are no multiple, so that every rounding is the settlement's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import Category, Ranking, places
from casino_brag.game.paytable import Paytable
from casino_brag.game.settlement import Reason, Result, Spot, Stakes, qualifying_class, settle_outcome
from casino_brag.odds.outcomes import hand_places, rank_classes
from casino_brag.odds.payoffs import whole_stakes

CATEGORIES: Final = tuple(Category)
RESULTS: Final = tuple(Result)
SPOTS: Final = tuple(Spot)
REASONS: Final = tuple(Reason)

NO_WAGER: Final = -1
"""In the place of a reason: nothing lay on that spot, or was paid there."""

Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

_FOLD, _NOT_QUALIFIED, _WIN, _TIE, _LOSE = map(
    RESULTS.index, (Result.FOLD, Result.NOT_QUALIFIED, Result.WIN, Result.TIE, Result.LOSE)
)


@dataclass(frozen=True, eq=False, slots=True)
class Settlements:
    """How rounds ended, a row for each.

    Categories and results are positions in ``CATEGORIES`` and ``RESULTS``.  The last three are of shape (rounds, 4),
    by ``SPOTS``: minor units, payouts with what is returned of the stake, and positions in ``REASONS`` or ``NO_WAGER``.
    """

    player_category: Integers
    dealer_category: Integers
    dealer_qualified: Truths
    result: Integers
    stake_minor: Integers
    payout_minor: Integers
    reason: Integers

    def columns(self) -> tuple[Integers | Truths, ...]:
        """All of them, in this order."""
        return (
            *(self.player_category, self.dealer_category, self.dealer_qualified, self.result),
            *(self.stake_minor, self.payout_minor, self.reason),
        )


def settle_all(
    paytable: Paytable, cards: Integers, plays: Truths, ante_minor: Integers, pair_bonus_minor: Integers
) -> Settlements:
    """Settles rounds of one paytable.

    `cards` has six different card indexes a row, in the order dealt; `plays` says which rounds are played, others are
    folded.  Stakes have to be such as the paytable takes (`Paytable.check_stakes`).

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> queens_against_ace_high = np.array([[40, 41, 8, 51, 31, 17]])
    >>> played = settle_all(paytable, queens_against_ace_high, np.array([True]), np.array([100]), np.array([50]))
    >>> RESULTS[played.result[0]].value, played.payout_minor.tolist()
    ('win', [[200, 200, 0, 100]])
    """
    classes, category_of = _classes(paytable.ranking)
    player, dealer = (classes[hand_places(cards[:, three])] for three in (slice(3), slice(3, 6)))
    qualified = dealer >= qualifying_class(paytable.ranking, paytable.qualifier)
    result = np.where(player > dealer, _WIN, np.where(player == dealer, _TIE, _LOSE))
    result[~qualified] = _NOT_QUALIFIED
    result[~plays] = _FOLD
    category = category_of[player]
    wagers = _wagers(paytable, ante_minor, pair_bonus_minor, category, result)
    return Settlements(category, category_of[dealer], qualified, result, *wagers)


@lru_cache(maxsize=16)
def _classes(ranking: Ranking) -> tuple[Integers, Integers]:
    """The rank class of every hand, and the category of each class."""
    category_of = np.array([0, *(CATEGORIES.index(place.category) for place in places(ranking).values())])
    return rank_classes(ranking), category_of


def _wagers(
    paytable: Paytable, ante_minor: Integers, pair_bonus_minor: Integers, category: Integers, result: Integers
) -> tuple[Integers, Integers, Integers]:
    """Stakes, payouts and reasons by spot."""
    whole = whole_stakes(paytable)
    antes, pair_bonuses = (
        np.where(stake % least == 0, np.minimum(stake, least), stake)
        for stake, least in ((ante_minor, whole.ante_minor), (pair_bonus_minor, whole.pair_bonus_minor or 1))
    )
    every_ending = np.stack((antes, pair_bonuses, category * len(RESULTS) + result))
    order = np.lexsort(every_ending)
    ordered = every_ending[:, order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    endings = ordered[:, begins].T.tolist()
    ending_of = np.empty(len(order), dtype=np.int64)
    ending_of[order] = np.cumsum(begins) - 1

    stake, payout = np.zeros((2, len(endings), len(SPOTS)), dtype=np.int64)
    reason = np.full((len(endings), len(SPOTS)), NO_WAGER)
    for row, (ante, pair_bonus, ending) in enumerate(endings):
        of_player, met = divmod(ending, len(RESULTS))
        for wager in settle_outcome(paytable, Stakes(ante, pair_bonus), CATEGORIES[of_player], RESULTS[met]):
            place = row, SPOTS.index(wager.spot)
            stake[place], payout[place] = wager.stake_minor, wager.payout_minor
            reason[place] = REASONS.index(wager.reason)
    times = np.empty((len(order), len(SPOTS)), dtype=np.int64)
    times[:] = (ante_minor // antes)[:, np.newaxis]
    times[:, SPOTS.index(Spot.PAIR_BONUS)] = pair_bonus_minor // np.maximum(pair_bonuses, 1)
    return stake[ending_of] * times, payout[ending_of] * times, reason[ending_of]
