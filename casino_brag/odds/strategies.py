"""Ways to decide: which hands to play, and the best of all ways."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.hands import Category, Shape, places
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import Result, Stakes, qualifying_class
from casino_brag.odds.outcomes import DEALER_HANDS, PLAYED_RESULTS, Integers, Outcomes, outcomes
from casino_brag.odds.payoffs import MAIN, Amounts, payoffs, total, whole_stakes

Decisions = NDArray[np.bool_]
"""For each kind of hand, in the order of :class:`casino_brag.odds.outcomes.Outcomes`, whether it is played."""

_ROUNDS_OF_DINKELBACH_MAX: Final = 100
"""A ratio is found in a handful of rounds: each strictly improves it, and superlinearly."""

assert tuple(Result) == (Result.FOLD, *PLAYED_RESULTS), "the first column of an ending is the fold"


class Rule(StrEnum):
    """What a strategy goes by."""

    MAX_EXPECTATION = "max_expectation"
    """Play what is worth more played than folded: the least loss for an Ante.  The default everywhere."""

    MAX_RTP = "max_rtp"
    """The highest return on all money staked, which plays on a little more often."""

    DEALER_MIMIC = "dealer_mimic"
    """Play what the dealer would qualify with."""

    ALWAYS_PLAY = "always_play"
    """Play every hand."""

    FOLD_BELOW = "fold_below"
    """Play from a given hand up: ``fold_below:K``, ``fold_below:pair``, ``fold_below:Q-6-4``."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to decide, in words that :meth:`parse` reads: ``max_expectation``, ``fold_below:Q-6-4``.

    ``below`` belongs to FOLD_BELOW: a shape, or like a dealer's qualifier a rank that must head the hand, or a
    pair.
    """

    rule: Rule
    below: Qualifier | Shape | None = None

    def __post_init__(self) -> None:
        assert (self.below is not None) == (self.rule is Rule.FOLD_BELOW)

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """The strategy with this name; ValueError for anything else.

        >>> Strategy.parse("fold_below:K-3-2").below
        Shape(ranks=(11, 1, 0), suited=False)
        >>> str(Strategy.parse("fold_below:pair"))
        'fold_below:pair'
        """
        name, _, below = text.partition(":")
        if name == Rule.FOLD_BELOW and below:
            return cls(Rule.FOLD_BELOW, Qualifier(below) if below in list(Qualifier) else Shape.parse(below))
        if text in list(Rule) and text != Rule.FOLD_BELOW:
            return cls(Rule(text))
        rules = ", ".join(rule for rule in Rule if rule is not Rule.FOLD_BELOW)
        raise ValueError(
            f"{text!r} is no strategy: write one of {rules}, or fold_below: and a hand, such as fold_below:Q-6-4"
        )

    def __str__(self) -> str:
        return self.rule.value if self.below is None else f"{self.rule}:{self.below}"

    def decisions(self, paytable: Paytable, stakes: Stakes | None = None) -> Decisions:
        """Which kinds of hand it plays under a paytable; ``stakes`` matter where the rules round winnings, and
        without them nothing is rounded.

        >>> paytable = Paytable.load("paytables/three-card-brag.toml")
        >>> counted = outcomes(paytable.ranking, paytable.qualifier)
        >>> [int(counted.hands @ rule.decisions(paytable)) for rule in (MAX_EXPECTATION, MAX_RTP)]
        [14900, 15020]
        """
        counted = outcomes(paytable.ranking, paytable.qualifier)
        match self.rule:
            case Rule.MAX_EXPECTATION:
                return best_decisions(counted, payoffs(paytable, stakes or whole_stakes(paytable)).net(MAIN))
            case Rule.MAX_RTP:
                return _best_ratio(counted, paytable, stakes or whole_stakes(paytable))
            case Rule.DEALER_MIMIC:
                return _from(counted, qualifying_class(paytable.ranking, paytable.qualifier))
            case Rule.ALWAYS_PLAY:
                return _from(counted, 1)
            case Rule.FOLD_BELOW:
                if isinstance(self.below, Shape):
                    return _from(counted, places(paytable.ranking)[self.below].rank_class)
                assert self.below is not None
                return _from(counted, qualifying_class(paytable.ranking, self.below))


MAX_EXPECTATION: Final = Strategy(Rule.MAX_EXPECTATION)
MAX_RTP: Final = Strategy(Rule.MAX_RTP)
DEALER_MIMIC: Final = Strategy(Rule.DEALER_MIMIC)
ALWAYS_PLAY: Final = Strategy(Rule.ALWAYS_PLAY)


def best_decisions(counted: Outcomes, value: Amounts) -> Decisions:
    """Play a hand exactly when it is worth more played than folded, given what each ending is worth.

    Where both are worth the same it folds, which stakes less.

    >>> paytable = Paytable.load("paytables/double-play-brag.toml")
    >>> counted = outcomes(paytable.ranking, paytable.qualifier)
    >>> net = payoffs(paytable, Stakes(100)).net()
    >>> int(counted.hands @ best_decisions(counted, net))
    12740
    """
    largest = abs(value).max()
    # Odds and a common denominator together may exceed 64 bits; Python's own integers then.
    kind = np.dtype(np.int64) if largest < 2**63 // (2 * DEALER_HANDS) else np.dtype(object)
    worth = value.astype(kind)[counted.category]
    better: Decisions = (counted.counts * worth[:, 1:]).sum(axis=1) > DEALER_HANDS * worth[:, 0]
    return better.astype(np.bool_)


def count_endings(counted: Outcomes, plays: Decisions) -> Integers:
    """How many of the 407,170,400 deals end in each way under a strategy: shape (6, 5), Category by Result.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> counted = outcomes(paytable.ranking, paytable.qualifier)
    >>> count_endings(counted, MAX_EXPECTATION.decisions(paytable)).sum(axis=0).tolist()
    [132652800, 85493652, 97354684, 267648, 91401616]
    """
    dealt = np.where(plays[:, np.newaxis], counted.counts, 0)
    folded = np.where(plays, 0, DEALER_HANDS)
    endings = np.column_stack((folded, dealt)) * counted.hands[:, np.newaxis]
    of_category: Integers = counted.category == np.arange(len(Category))[:, np.newaxis]
    by_category: Integers = of_category.astype(np.int64) @ endings
    return by_category


def _from(counted: Outcomes, rank_class: int) -> Decisions:
    plays: Decisions = counted.rank_class >= rank_class
    return plays


def _best_ratio(counted: Outcomes, paytable: Paytable, stakes: Stakes) -> Decisions:
    """The decisions with the highest net for what is staked (W. Dinkelbach, On Nonlinear Fractional
    Programming, Management Science 13, 1967): with r the best ratio found so far, the decisions that maximise
    net - r x staked have a better one, or r is the best there is.
    """
    paid = payoffs(paytable, stakes)
    net, staked = paid.net(MAIN), paid.staked(MAIN)
    plays = best_decisions(counted, net)
    for _ in range(_ROUNDS_OF_DINKELBACH_MAX):
        endings = count_endings(counted, plays)
        won, put_down = total(endings, net), total(endings, staked)
        better = best_decisions(counted, put_down * net - won * staked)
        if np.array_equal(better, plays):
            return plays
        plays = better
    raise AssertionError("each round improves the ratio, and there are finitely many decisions")
