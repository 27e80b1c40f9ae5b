"""The paytable: everything that makes one game of house-banked 3 Card Brag, as data.

A paytable has two text forms: the TOML file an operator edits, and the plain document that is stored, sent
and digested.  Both say the same, key for key, and both are read by the same checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import rfc8785

from casino_brag.game.cards import RANKS
from casino_brag.game.hands import AceLowRun, Category, Ranking
from casino_brag.game.paytable_file import PaytableError, Problem, Report, Table, read_text, read_toml_text
from casino_brag.game.rules import (
    AnteBonus,
    Claim,
    Limits,
    NotQualified,
    PairBonus,
    Pays,
    Qualifier,
    Rounding,
    StakeRange,
    TieResult,
    Unqualified,
    odds_document,
    pays_document,
    read_pays,
)
from casino_brag.game.settlement import Stakes, maximum_payout_minor

__all__ = ["PAYOUT_MAX_MINOR", "Paytable", "PaytableError", "Problem", "Refusal", "StakeRefused"]

PAYOUT_MAX_MINOR: Final = 2**52
"""No round pays more, whatever a paytable allows, so that amounts stay far from the limits of JSON."""

PLAY_MULTIPLE_MAX: Final = 10
CURRENCIES_MAX: Final = 100
"""So many that a form with a field for each limit stays below the 64 KiB that a request may bring."""
CLAIMS_MAX: Final = 50

GAME_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
GAME_NAME_LENGTH_MAX: Final = 60
_CURRENCY: Final = re.compile(r"[A-Z0-9]{3,12}")
_RANK: Final = re.compile(f"[{RANKS}]")


class Refusal(StrEnum):
    """Why stakes are refused."""

    CURRENCY_NOT_OFFERED = "currency_not_offered"
    """The game has no limits for that currency, so it is not played in it."""

    NO_PAIR_BONUS = "no_pair_bonus"
    """The game has no Pair Bonus to stake on."""

    OUT_OF_LIMITS = "out_of_limits"
    """A stake is below the least or above the most."""

    OFF_STEP = "off_step"
    """A stake lies between two steps."""

    PAYOUT_TOO_LARGE = "payout_too_large"
    """The stakes could win more than the game may pay."""


class StakeRefused(Exception):
    """Stakes the paytable does not take.

    ``field`` is ``currency``, ``ante_minor`` or ``pair_bonus_minor``; ``detail`` says in a sentence what
    would do.
    """

    def __init__(self, field: str, reason: Refusal, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Paytable:
    """One game's rules, pays and limits.

    ``play_pays`` names all six categories.  ``limits`` is by currency code.  ``rounding`` None says that
    every allowed stake is paid in whole minor units.  Paytables of one content are equal and have one digest.
    """

    game: str
    title: str
    ranking: Ranking
    qualifier: Qualifier
    not_qualified: NotQualified
    play_multiple: int
    play_pays: Pays
    ante_pays: Fraction
    tie: TieResult
    ante_bonus: AnteBonus | None
    pair_bonus: PairBonus | None
    limits: Mapping[str, Limits]
    rounding: Rounding | None = None
    claims: tuple[Claim, ...] = ()
    digest: str = field(init=False, compare=False)
    """SHA-256, in hex, of :meth:`canonical_bytes`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", sha256(self.canonical_bytes()).hexdigest())

    def __hash__(self) -> int:
        return hash(self.digest)

    @classmethod
    def load(cls, path: str | Path) -> Paytable:
        """The paytable in a file named ``<game>.toml``; PaytableError with every problem in it.

        >>> Paytable.load("paytables/three-card-brag.toml").title
        '3 Card Brag'
        """
        path = Path(path)
        return cls.parse(read_text(path), game=path.stem, file=str(path))

    @classmethod
    def parse(cls, text: str, *, game: str, file: str = "paytable") -> Paytable:
        """The paytable in the text of this game's file; PaytableError with every problem in it.

        ``file`` is what the problems name as their place.

        >>> text = Path("paytables/three-card-brag.toml").read_text()
        >>> Paytable.parse(text, game="three-card-brag") == Paytable.load("paytables/three-card-brag.toml")
        True
        """
        content, report = read_toml_text(text, file)
        paytable = cls._read(report.root(content), report)
        if report.clean("game") and paytable.game != game:
            report.add("game", f"{paytable.game!r} is not the file's name: one of the two must change")
        report.raise_problems()
        return paytable

    @classmethod
    def from_document(cls, document: Mapping[str, object], *, file: str = "paytable") -> Paytable:
        """The paytable in a document, such as :meth:`document` makes; PaytableError with every problem in it.

        ``file`` is what the problems name as their place.

        >>> paytable = Paytable.load("paytables/double-play-brag.toml")
        >>> Paytable.from_document(paytable.document()) == paytable
        True
        """
        report = Report(file)
        paytable = cls._read(report.root(document), report)
        report.raise_problems()
        return paytable

    def document(self) -> dict[str, Any]:
        """The paytable as plain data, in the layout of the file: whole odds as integers, others as ``"a/b"``
        in lowest terms, optional keys left out where they are not used.

        >>> Paytable.load("paytables/double-play-brag.toml").document()["play"]["multiple"]
        2
        """
        ranking: dict[str, Any] = {
            "categories": [category.value for category in self.ranking.categories],
            "ace_low_run": self.ranking.ace_low_run.value,
        }
        if self.ranking.best_prial is not None:
            ranking["best_prial"] = self.ranking.best_prial
        document: dict[str, Any] = {
            "game": self.game,
            "title": self.title,
            "ranking": ranking,
            "dealer": {
                "qualifies_with": self.qualifier.value,
                "not_qualified": {
                    "ante": self.not_qualified.ante.value,
                    "play": self.not_qualified.play.value,
                },
            },
            "play": {"multiple": self.play_multiple, "pays": pays_document(self.play_pays)},
            "ante": {"pays": odds_document(self.ante_pays)},
            "tie": {"result": self.tie.value},
            "limits": {currency: limits.document() for currency, limits in self.limits.items()},
        }
        if self.ante_bonus is not None:
            document["ante_bonus"] = self.ante_bonus.document()
        if self.pair_bonus is not None:
            document["pair_bonus"] = self.pair_bonus.document()
        if self.rounding is not None:
            document["rounding"] = self.rounding.value
        if self.claims:
            document["claims"] = [claim.document() for claim in self.claims]
        return document

    def canonical_bytes(self) -> bytes:
        """The document as RFC 8785 canonical JSON: the bytes that are digested.

        >>> Paytable.load("paytables/three-card-brag.toml").canonical_bytes()[:20]
        b'{"ante":{"pays":1},"'
        """
        return rfc8785.dumps(self.document())

    def check_stakes(self, currency: str, ante_minor: int, pair_bonus_minor: int = 0) -> None:
        """StakeRefused unless a round may be opened with these stakes; a Pair Bonus of 0 is none.

        >>> paytable = Paytable.load("paytables/three-card-brag.toml")
        >>> paytable.check_stakes("GBP", 100, 50)
        >>> try:
        ...     paytable.check_stakes("GBP", 102)
        ... except StakeRefused as refused:
        ...     refused.reason.value, refused.detail
        ('off_step', 'ante_minor goes from 5 to 300000 in steps of 5: 102 is between two')
        """
        limits = self.limits.get(currency)
        if limits is None:
            offered = ", ".join(sorted(self.limits))
            raise StakeRefused("currency", Refusal.CURRENCY_NOT_OFFERED, f"this game is played in {offered}")
        _check_range("ante_minor", ante_minor, limits.ante)
        if pair_bonus_minor != 0:
            if limits.pair_bonus is None:
                raise StakeRefused("pair_bonus_minor", Refusal.NO_PAIR_BONUS, "this game has no Pair Bonus")
            _check_range("pair_bonus_minor", pair_bonus_minor, limits.pair_bonus)
        bound = min(limits.payout_max_minor or PAYOUT_MAX_MINOR, PAYOUT_MAX_MINOR)
        could_pay = maximum_payout_minor(self, Stakes(ante_minor, pair_bonus_minor))
        if could_pay > bound:
            largest = "pair_bonus_minor" if pair_bonus_minor else "ante_minor"
            detail = f"these stakes could pay {could_pay}, and a round pays at most {bound}: stake less"
            raise StakeRefused(largest, Refusal.PAYOUT_TOO_LARGE, detail)

    def odds(self) -> Iterator[tuple[str, Fraction, str]]:
        """All odds as (key, winnings for each unit of the stake, the wager whose limits hold that stake).

        >>> next(Paytable.load("paytables/double-play-brag.toml").odds())
        ('ante.pays', Fraction(1, 1), 'ante')
        """
        yield "ante.pays", self.ante_pays, "ante"
        for category, odds in self.play_pays.items():
            yield f"play.pays.{category}", self.play_multiple * odds, "ante"
        for category, odds in (self.ante_bonus.pays if self.ante_bonus else {}).items():
            yield f"ante_bonus.pays.{category}", odds, "ante"
        for category, odds in (self.pair_bonus.pays if self.pair_bonus else {}).items():
            yield f"pair_bonus.pays.{category}", odds, "pair_bonus"

    @classmethod
    def _read(cls, root: Table, report: Report) -> Paytable:
        ranking, dealer, play = root.table("ranking"), root.table("dealer"), root.table("play")
        not_qualified = dealer.table("not_qualified")
        has_best_prial = "best_prial" in ranking
        ante_bonus = AnteBonus.read(root.table("ante_bonus")) if "ante_bonus" in root else None
        pair_bonus = PairBonus.read(root.table("pair_bonus")) if "pair_bonus" in root else None
        has_pair_bonus = pair_bonus is not None
        claims = root.tables("claims")
        if len(claims) > CLAIMS_MAX:
            root.problem("claims", f"{len(claims)} claims: give at most {CLAIMS_MAX}")
        paytable = cls(
            game=root.text(
                "game",
                longest=GAME_NAME_LENGTH_MAX,
                pattern=GAME_NAME,
                wanted="a name such as 'three-card-brag'",
            ),
            title=root.text("title", longest=80),
            ranking=Ranking(
                categories=ranking.each_once("categories", Category),
                best_prial=(
                    ranking.text("best_prial", longest=1, pattern=_RANK, wanted=f"one rank of {RANKS}")
                    or None
                    if has_best_prial
                    else None
                ),
                ace_low_run=ranking.choice("ace_low_run", AceLowRun),
            ),
            qualifier=dealer.choice("qualifies_with", Qualifier),
            not_qualified=NotQualified(
                ante=not_qualified.choice("ante", Unqualified), play=not_qualified.choice("play", Unqualified)
            ),
            play_multiple=play.integer("multiple", 1, PLAY_MULTIPLE_MAX),
            play_pays=read_pays(play.table("pays"), every_category=True),
            ante_pays=root.table("ante").odds("pays"),
            tie=root.table("tie").choice("result", TieResult),
            ante_bonus=ante_bonus,
            pair_bonus=pair_bonus,
            limits=_read_limits(root.table("limits"), has_pair_bonus=has_pair_bonus),
            rounding=root.choice("rounding", Rounding) if "rounding" in root else None,
            claims=tuple(Claim.read(table, has_pair_bonus=has_pair_bonus) for table in claims),
        )
        paytable._check_whole_units(report)
        paytable._check_payout_max(report)
        return paytable

    def _check_whole_units(self, report: Report) -> None:
        """Every allowed stake at every odds must give whole minor units, unless the rules round."""
        if self.rounding is not None or not report.clean("rounding"):
            return
        for currency, limits in self.limits.items():
            for key, odds, wager in self.odds():
                stakes = limits.ante if wager == "ante" else limits.pair_bonus
                if stakes is None or not report.clean(f"limits.{currency}.{wager}"):
                    continue
                stake = stakes.first_not_whole(odds)
                if stake is not None:
                    report.add(
                        key,
                        f"an allowed {currency} {wager} of {stake} does not win whole minor units: make min"
                        f" and step in limits.{currency}.{wager} multiples of {odds.denominator}, or set"
                        ' rounding = "down"',
                    )

    def _check_payout_max(self, report: Report) -> None:
        """The smallest round must be allowed to win, or the game could never be opened."""
        if not report.clean(""):
            return
        for currency, limits in self.limits.items():
            least = maximum_payout_minor(self, Stakes(limits.ante.min_minor))
            if limits.payout_max_minor is not None and least > limits.payout_max_minor:
                report.add(
                    f"limits.{currency}.payout_max",
                    f"even the smallest ante could pay {least}: raise it to that or more",
                )


def _read_limits(table: Table, *, has_pair_bonus: bool) -> dict[str, Limits]:
    limits = {}
    for currency in table:
        if _CURRENCY.fullmatch(currency):
            limits[currency] = Limits.read(table.table(currency), has_pair_bonus=has_pair_bonus)
        else:
            table.problem(currency, "a currency code has 3 to 12 capital letters and digits: rename it")
    if len(limits) > CURRENCIES_MAX:
        table.problem("", f"{len(limits)} currencies: give at most {CURRENCIES_MAX}")
    if not limits:
        table.problem("", "no currency has limits: add a table such as [limits.GBP]")
    return limits


def _check_range(field: str, stake_minor: int, stakes: StakeRange) -> None:
    allowed = f"{field} goes from {stakes.min_minor} to {stakes.max_minor} in steps of {stakes.step_minor}"
    if not stakes.min_minor <= stake_minor <= stakes.max_minor:
        raise StakeRefused(field, Refusal.OUT_OF_LIMITS, f"{allowed}: {stake_minor} is outside")
    if not stakes.on_step(stake_minor):
        raise StakeRefused(field, Refusal.OFF_STEP, f"{allowed}: {stake_minor} is between two")
