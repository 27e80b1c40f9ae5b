"""The parts of a paytable: each option of the rules as a value with both of its text forms.

Every class here can be read from a table of a paytable file (``read``) and written back as plain data
(``document``); :class:`casino_brag.game.paytable.Paytable` puts them together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final

from casino_brag.game.hands import Category
from casino_brag.game.paytable_file import Table

MINOR_MAX: Final = 2**53 - 1
"""The largest amount in minor units: the largest integer every JSON reader keeps exact."""


class Qualifier(StrEnum):
    """The weakest hand with which the dealer stays in the round."""

    TEN = "T"
    """Ten high or better."""

    JACK = "J"
    """Jack high or better."""

    QUEEN = "Q"
    """Queen high or better: how Brag is usually dealt."""

    KING = "K"
    """King high or better."""

    ACE = "A"
    """Ace high or better."""

    PAIR = "pair"
    """A pair or better."""

    ANY = "any"
    """Every hand qualifies."""


class Unqualified(StrEnum):
    """What becomes of a wager when the dealer does not qualify."""

    WINS = "wins"
    """It is paid at its odds."""

    PUSH = "push"
    """It is returned."""


class TieResult(StrEnum):
    """Who has the Ante and the Play when the hands are equal."""

    PUSH = "push"
    """Nobody: both are returned."""

    DEALER = "dealer"
    """The dealer: both are lost."""

    PLAYER = "player"
    """The player: both are paid at their odds."""


class BonusPaid(StrEnum):
    """When the Ante Bonus is paid; never after a fold."""

    ALWAYS = "always"
    """Whenever the player has played."""

    NOT_BEATEN = "not_beaten"
    """Unless a qualified dealer has the better hand: equal hands are not beaten, whoever has the tie."""

    WIN = "win"
    """Only when a qualified dealer is beaten or the dealer does not qualify; never on equal hands."""


class OnFold(StrEnum):
    """What becomes of the Pair Bonus when the player folds."""

    LOST = "lost"
    """It is lost with the Ante."""

    SETTLED = "settled"
    """It is settled on the player's cards as if the player had played."""


class Rounding(StrEnum):
    """What becomes of a part of a minor unit in winnings.  A paytable without it never has such parts."""

    DOWN = "down"
    """It stays with the house, wager by wager."""


class ClaimFigure(StrEnum):
    """The figure a claim is about."""

    RTP = "rtp"
    """All that is returned over all that is staked."""

    HOUSE_EDGE = "house_edge"
    """Expected loss over the Ante, or over the Pair Bonus."""

    ELEMENT_OF_RISK = "element_of_risk"
    """Expected loss over all that is staked."""


class ClaimWager(StrEnum):
    """The wager a claim is about."""

    MAIN = "main"
    """Ante, Play and Ante Bonus together, played for the highest expectation."""

    PAIR_BONUS = "pair_bonus"
    """The Pair Bonus by itself."""


Pays = Mapping[Category, Fraction]
"""Odds "to 1" by the player's category: winnings = stake x odds, the stake not counted."""


def odds_document(odds: Fraction) -> int | str:
    """Odds as a document holds them: a whole number, or ``"a/b"`` in lowest terms.

    >>> odds_document(Fraction(5)), odds_document(Fraction(6, 4))
    (5, '3/2')
    """
    return odds.numerator if odds.denominator == 1 else f"{odds.numerator}/{odds.denominator}"


def pays_document(pays: Pays) -> dict[str, int | str]:
    """A pay table as a document holds it.

    >>> pays_document({Category.RUN: Fraction(3, 2)})
    {'run': '3/2'}
    """
    return {category.value: odds_document(odds) for category, odds in pays.items()}


def read_pays(table: Table, *, every_category: bool) -> Pays:
    """A pay table: all six categories with odds from 0 up, or at least one category with odds above 0."""
    if every_category:
        return {category: table.odds(category.value) for category in Category}
    pays = {category: table.odds(category.value, positive=True) for category in Category if category in table}
    if not pays and not table.absent:
        table.problem("", "no category pays: name at least one, or remove the whole bonus")
    return pays


@dataclass(frozen=True, slots=True)
class NotQualified:
    """What becomes of Ante and Play when the dealer does not qualify, whatever the dealer's cards are."""

    ante: Unqualified
    play: Unqualified


@dataclass(frozen=True, slots=True)
class AnteBonus:
    """Extra pay on the Ante for the player's own cards, without a stake of its own."""

    paid: BonusPaid
    pays: Pays

    @classmethod
    def read(cls, table: Table) -> AnteBonus:
        """Read [ante_bonus]."""
        return cls(
            paid=table.choice("paid", BonusPaid), pays=read_pays(table.table("pays"), every_category=False)
        )

    def document(self) -> dict[str, Any]:
        """The same as plain data, in the file's layout."""
        return {"paid": self.paid.value, "pays": pays_document(self.pays)}


@dataclass(frozen=True, slots=True)
class PairBonus:
    """A wager of its own on the player's cards."""

    on_fold: OnFold
    pays: Pays

    @classmethod
    def read(cls, table: Table) -> PairBonus:
        """Read [pair_bonus]."""
        return cls(
            on_fold=table.choice("on_fold", OnFold), pays=read_pays(table.table("pays"), every_category=False)
        )

    def document(self) -> dict[str, Any]:
        """The same as plain data, in the file's layout."""
        return {"on_fold": self.on_fold.value, "pays": pays_document(self.pays)}


@dataclass(frozen=True, slots=True)
class StakeRange:
    """The stakes a wager takes: ``min_minor``, ``min_minor + step_minor``, … ``max_minor``."""

    min_minor: int
    max_minor: int
    step_minor: int

    @classmethod
    def read(cls, table: Table) -> StakeRange:
        """Read a wager's limits, such as limits.GBP.ante."""
        stakes = cls(
            min_minor=table.integer("min", 1, MINOR_MAX),
            max_minor=table.integer("max", 1, MINOR_MAX),
            step_minor=table.integer("step", 1, MINOR_MAX),
        )
        if not table.clean():
            return stakes
        if stakes.max_minor < stakes.min_minor:
            table.problem("max", f"{stakes.max_minor} is below min = {stakes.min_minor}: raise it")
        elif not stakes.on_step(stakes.max_minor):
            reachable = stakes.max_minor - (stakes.max_minor - stakes.min_minor) % stakes.step_minor
            table.problem(
                "max", f"no step from min reaches {stakes.max_minor}: {reachable} is the last below it"
            )
        return stakes

    def document(self) -> dict[str, int]:
        """The same as plain data, in the file's layout."""
        return {"min": self.min_minor, "max": self.max_minor, "step": self.step_minor}

    def on_step(self, stake_minor: int) -> bool:
        """Whether a stake is a whole number of steps from the smallest.

        >>> StakeRange(5, 50, 10).on_step(25), StakeRange(5, 50, 10).on_step(30)
        (True, False)
        """
        return (stake_minor - self.min_minor) % self.step_minor == 0

    def first_not_whole(self, odds: Fraction) -> int | None:
        """The smallest allowed stake which those odds pay in parts of a minor unit; None when there is none.

        Stakes are the first plus whole steps, so it is the first, the second, or none.

        >>> [StakeRange(2, 10, step).first_not_whole(Fraction(3, 2)) for step in (2, 1)]
        [None, 3]
        """
        first_two = (self.min_minor, self.min_minor + self.step_minor)
        allowed = (stake for stake in first_two if stake <= self.max_minor)
        return next((stake for stake in allowed if (stake * odds).denominator != 1), None)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one currency may stake and win a round, in its minor units.

    ``pair_bonus`` is None exactly when the game has no Pair Bonus; ``payout_max_minor`` bounds the total
    payout, stakes included, None for no bound of its own.
    """

    ante: StakeRange
    pair_bonus: StakeRange | None
    payout_max_minor: int | None

    @classmethod
    def read(cls, table: Table, *, has_pair_bonus: bool) -> Limits:
        """Read a currency's limits, such as [limits.GBP]."""
        ante = StakeRange.read(table.table("ante"))
        pair_bonus = StakeRange.read(table.table("pair_bonus")) if has_pair_bonus else None
        if not has_pair_bonus and "pair_bonus" in table:
            table.problem("pair_bonus", "this game has no [pair_bonus]: add that table, or remove this line")
        payout_max = table.integer("payout_max", 1, MINOR_MAX) if "payout_max" in table else None
        return cls(ante, pair_bonus, payout_max)

    def document(self) -> dict[str, Any]:
        """The same as plain data, in the file's layout."""
        document: dict[str, Any] = {"ante": self.ante.document()}
        if self.pair_bonus is not None:
            document["pair_bonus"] = self.pair_bonus.document()
        if self.payout_max_minor is not None:
            document["payout_max"] = self.payout_max_minor
        return document


_PERCENTAGE: Final = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,12}))? ?%")


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure printed elsewhere about this game, to be checked against the exact one.

    ``value`` is a percentage as printed, such as ``98 %`` or ``97.996 %``.
    """

    figure: ClaimFigure
    wager: ClaimWager
    value: str
    source: str

    @classmethod
    def read(cls, table: Table, *, has_pair_bonus: bool) -> Claim:
        """Read one of [[claims]]."""
        claim = cls(
            figure=table.choice("figure", ClaimFigure),
            wager=table.choice("wager", ClaimWager),
            value=table.text(
                "value", longest=20, pattern=_PERCENTAGE, wanted="a percentage such as '97.996 %'"
            ),
            source=table.text("source", longest=300),
        )
        if claim.wager is ClaimWager.PAIR_BONUS and not has_pair_bonus:
            table.problem("wager", "this game has no [pair_bonus]: add that table, or remove the claim")
        return claim

    def document(self) -> dict[str, Any]:
        """The same as plain data, in the file's layout."""
        return {
            "figure": self.figure.value,
            "wager": self.wager.value,
            "value": self.value,
            "source": self.source,
        }

    def holds(self, exact: Fraction) -> bool:
        """Whether an exact figure, rounded to as many digits as the claim gives, is the claimed one.

        >>> claim = Claim(ClaimFigure.RTP, ClaimWager.MAIN, "98 %", "a leaflet")
        >>> claim.holds(Fraction(97_996, 100_000)), claim.holds(Fraction(97_499, 100_000))
        (True, False)
        """
        match = _PERCENTAGE.fullmatch(self.value)
        assert match is not None, f"a claim's value is a percentage, not {self.value!r}"
        whole, decimals = match[1], match[2] or ""
        last_digit = Fraction(1, 10 ** len(decimals))
        return 2 * abs(100 * exact - int(whole + decimals) * last_digit) <= last_digit
