"""Evidence against fair play that may be looked at as often as one likes.

An ordinary test allows one look.  Looked at daily its figure passes any limit sooner or later, with nothing wrong.
Here evidence is the money of somebody who bets against the rules at the very odds of the rules: each round multiplies
it by a factor whose mean is exactly 1 as long as the rules hold, whatever players decide and stake.  So it is a *test
martingale*, and by J. Ville's inequality (Étude critique de la notion de collectif, 1939) its chance of *ever* reaching
20 times what it began with is at most 1 in 20: at any time, with any number of looks.  (G. Shafer, Testing by Betting,
JRSS A 184, 2021; P. Grünwald, R. de Heide, W. Koolen, Safe Testing, JRSS B 86, 2024; I. Waudby-Smith, A. Ramdas,
Estimating Means of Bounded Random Variables by Betting, JRSS B 86, 2024; S. Howard, A. Ramdas, J. McAuliffe, J. Sekhon,
Time-Uniform Chernoff Bounds via Nonnegative Supermartingales, Probability Surveys 17, 2020.)

Who does not know what is wrong divides the money among many bets, and is paid by those that were right: an average of
test martingales is one.  These are the streams, each with its share of the money (`SHARES`):

* ``main``: the main game pays too much or too little (`casino_brag.watch.bets.main_gains`).
* ``band N``: the same among the rounds of one stake band (`casino_brag.watch.bands.stake_band`).
* ``rankings``: hands are compared in another order (`casino_brag.watch.bets.ranking_gains`).  Sums of money do not show
  that, as what one hand loses another one wins.
* ``player's category``, ``dealer's category``, ``cards by position``: hands and cards come with other probabilities
  than they should, in any way (`casino_brag.watch.card_bets.dirichlet`).
* ``single cards``: one card comes too often or too seldom, to the player, to the dealer or to both.

A payout that no dealer's hand leads to, or a Pair Bonus that is not what is due, is no evidence but proof: the e-value
is infinite.

A fault may begin late, when bets made at the start have long lost their money.  So money is divided among days as well,
and among months for the dealt cards; see `Bets` and `CardBets`.

What the levels rest on: each settled round is taken once, and which rounds were taken by the time of a look has nothing
to do with their cards.  For the payouts that may be the order in which rounds are settled, as they are judged given the
hand and the decision.  For the dealt cards it may not: players think longer over some hands, so the rounds that are not
yet settled differ from the others.  Those are to be taken in the order of their deals, up to the first one still open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import inf, log
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from casino_brag.odds.outcomes import Integers
from casino_brag.watch.bands import BANDS
from casino_brag.watch.bets import Bets, log_sum, main_gains, ranking_gains
from casino_brag.watch.card_bets import CardBets
from casino_brag.watch.dealt import Dealt
from casino_brag.watch.expectation import Bools, Rounds, Rules

SHARES: Final[Mapping[str, float]] = {
    "main": 1 / 4,
    **{f"band {band}": 1 / 4 / BANDS for band in range(BANDS)},
    "rankings": 1 / 8,
    "player's category": 1 / 16,
    "dealer's category": 1 / 16,
    "cards by position": 1 / 8,
    "single cards": 1 / 8,
}
"""Each stream's share of the money: together 1, so that one level holds for all streams together."""


class Level(StrEnum):
    """How strong the evidence against a paytable version has ever been."""

    NONE = "none"
    """Within what chance does."""

    WARN = "warn"
    """Chance takes at most 1 version in 20 so far, ever: somebody looks."""

    ALERT = "alert"
    """At most 1 version in 100: a case is opened."""

    SUSPEND = "suspend"
    """At most 1 version in 10,000: reason enough to stop dealing."""


CHANCES: Final[Mapping[Level, Fraction]] = {
    Level.WARN: Fraction(1, 20),
    Level.ALERT: Fraction(1, 100),
    Level.SUSPEND: Fraction(1, 10_000),
}
"""The most probable that it can be for a version without a fault ever to reach a level: 1 over the e-value it takes."""


def level(log_e: float) -> Level:
    """The level that the natural logarithm of an e-value reaches.

    >>> [level(log(e)).value for e in (19.9, 20, 101, 1e4)]
    ['none', 'warn', 'alert', 'suspend']
    """
    reached = Level.NONE
    for at, chance in CHANCES.items():
        if log_e >= log(1 / chance):
            reached = at
    return reached


@dataclass(frozen=True, eq=False)
class Batch:
    """Settled rounds of one paytable version, with an array row for each; what was paid is from the records of money.

    ``bands`` are the stake bands of the Antes, ``cards`` the six card numbers in the order dealt, the player's first.
    """

    rounds: Rounds
    main_paid_minor: Integers
    bonus_paid_minor: Integers
    bands: Integers
    cards: NDArray[np.integer[Any]]

    @cached_property
    def possible(self) -> Bools:
        """Whether each round's payouts are such as some dealer's hand leads to."""
        due: Bools = self.bonus_paid_minor == self.rounds.bonus_due_minor
        return due & (self.rounds.ways_to(self.main_paid_minor) > 0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence against one paytable version, since its first round or since a closed case began it anew.

    ``impossible`` counts rounds with a payout that cannot be.  ``streams`` has the natural logarithm of each stream's
    e-value, ``log_highest`` that of the highest e-value of all together at any look.
    """

    rounds: int
    impossible: int
    bets: Mapping[str, Bets]
    cards: CardBets
    streams: Mapping[str, float]
    log_highest: float

    @classmethod
    def none(cls) -> Self:
        """Before the first round.

        >>> Evidence.none().level.value
        'none'
        """
        return cls(0, 0, {}, CardBets.none(), {}, 0.0)

    def after(self, rules: Rules, batch: Batch, day: int) -> Self:
        """With more rounds, on a day counted from the version's first, 0; those that come late are of the last day.

        Both what they paid and what they were dealt; where the two come at different times, each by itself.
        """
        return self.after_payouts(rules, batch, day).after_deals(rules, Dealt.of(rules, batch.cards), day)

    def after_payouts(self, rules: Rules, batch: Batch, day: int) -> Self:
        """With what more rounds paid, in the order of their settlement."""
        main = main_gains(batch.rounds, batch.main_paid_minor)
        gains = {"main": main.sum(axis=0)}
        for band in np.unique(batch.bands).tolist():
            gains[f"band {band}"] = main[batch.bands == band].sum(axis=0)
        gains["rankings"] = ranking_gains(rules, batch.rounds, batch.main_paid_minor).sum(axis=0)
        bets = {
            stream: self.bets.get(stream, Bets.none(len(gained))).after(day, gained)
            for stream, gained in gains.items()
        }
        counted = replace(
            self,
            rounds=self.rounds + len(batch.rounds),
            impossible=self.impossible + int((~batch.possible).sum()),
            bets={**self.bets, **bets},
        )
        return counted._looked_at({stream: float(each.log_e) for stream, each in bets.items()})

    def after_deals(self, rules: Rules, dealt: Dealt, day: int) -> Self:
        """With what more rounds were dealt, in the order of their deals."""
        cards = self.cards.after(rules, day, dealt)
        return replace(self, cards=cards)._looked_at(cards.log_e(rules))

    @property
    def log_e(self) -> float:
        """The natural logarithm of the e-value of all streams together, now; infinite once a payout was impossible."""
        return inf if self.impossible else together(self.streams)

    @property
    def level(self) -> Level:
        """The highest level ever reached."""
        return level(inf if self.impossible else self.log_highest)

    def document(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "rounds": self.rounds,
            "impossible": self.impossible,
            "bets": {stream: bets.document() for stream, bets in self.bets.items()},
            "cards": self.cards.document(),
            "streams": dict(self.streams),
            "log_highest": self.log_highest,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """What :meth:`document` wrote."""
        return cls(
            int(document["rounds"]),
            int(document["impossible"]),
            {stream: Bets.from_document(bets) for stream, bets in document["bets"].items()},
            CardBets.from_document(document["cards"]),
            {stream: float(log_e) for stream, log_e in document["streams"].items()},
            float(document["log_highest"]),
        )

    def _looked_at(self, changed: Mapping[str, float]) -> Self:
        streams = {**self.streams, **changed}
        return replace(self, streams=streams, log_highest=max(self.log_highest, together(streams)))


def together(streams: Mapping[str, float]) -> float:
    """The logarithm of the e-value of all streams together, each with its share; those without a round count 1.

    >>> round(together({}), 9) == 0, round(together({"main": log(81)}) - log(21), 9) == 0
    (True, True)
    """
    return float(log_sum([log(share) + streams.get(stream, 0.0) for stream, share in SHARES.items()]))
