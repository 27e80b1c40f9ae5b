"""The figures of a paytable that is being written, beside those of the one in force.

Only what takes milliseconds: the whole PAR sheet is for versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import Final

from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import odds_document
from casino_brag.game.settlement import Stakes
from casino_brag.odds.outcomes import HANDS
from casino_brag.odds.pages.shown import decimal, number, percent
from casino_brag.odds.payoffs import telling_stakes
from casino_brag.odds.returns import (
    Played,
    Returns,
    combined_game,
    main_game,
    pair_bonus_game,
    played,
    rtp_sd,
)
from casino_brag.odds.strategies import MAX_EXPECTATION

SAMPLE_ROUNDS: Final = 10_000
_Z: Final = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: what it is called, its value and its exact one, what that means, and how it differs."""

    label: str
    value: str
    exact: str = ""
    note: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True)
class Worth:
    """The figures of one type of wager."""

    wager: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Telling:
    """The few figures that are shown wherever a paytable is named."""

    main_rtp: Fraction
    house_edge: Fraction
    pair_bonus_rtp: Fraction | None
    played: Played

    @classmethod
    def of(cls, paytable: Paytable) -> Telling:
        """Those of a paytable.

        >>> told = Telling.of(Paytable.load("paytables/three-card-brag.toml"))
        >>> told.played.lowest, told.pair_bonus_rtp
        ('Q-6-4', Fraction(5407, 5525))
        """
        main, bonus = main_game(paytable), pair_bonus_game(paytable)
        return cls(
            main.rtp,
            main.house_edge,
            None if bonus is None else bonus.rtp,
            played(paytable, MAX_EXPECTATION.decisions(paytable)),
        )


def worths(paytable: Paytable, active: Paytable | None) -> tuple[Worth, ...]:
    """The figures of every type of wager; those that differ from the active paytable's say by how much.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> [(worth.wager, worth.figures[0].value, worth.figures[0].change) for worth in worths(paytable, paytable)]
    [('Main game', '97.996138 %', ''), ('Pair Bonus', '97.864253 %', ''), ('Both together', '97.946821 %', '')]
    """
    return tuple(_worths(paytable, active))


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of all types of wager, in their order; None where a type has no such figure."""

    label: str
    note: str
    figures: tuple[Figure | None, ...]


def rows(types: Sequence[Worth]) -> tuple[Row, ...]:
    """The figures as the rows of one table.

    >>> paytable = Paytable.load("paytables/three-card-brag.toml")
    >>> found = rows(worths(paytable, None))
    >>> [figure.value for figure in found[0].figures], found[1].figures[2]
    (['97.996138 %', '97.864253 %', '97.946821 %'], None)
    """
    by_label = [{figure.label: figure for figure in each.figures} for each in types]
    labels = dict.fromkeys(label for figures in by_label for label in figures)
    return tuple(
        Row(
            label,
            next(figures[label].note for figures in by_label if label in figures),
            tuple(figures.get(label) for figures in by_label),
        )
        for label in labels
    )


def _worths(new: Paytable, old: Paytable | None) -> Iterator[Worth]:
    main, was = main_game(new), None if old is None else main_game(old)
    yield Worth("Main game", (*_returns(main, was), *_play(new, main, old, was), *_rounded(new)))
    bonus, bonus_was = pair_bonus_game(new), None if old is None else pair_bonus_game(old)
    if bonus is not None:
        yield Worth("Pair Bonus", _returns(bonus, bonus_was))
    both, both_was = combined_game(new), None if old is None else combined_game(old)
    if both is not None:
        before = None if both_was is None else both_was.returns
        figures = (
            _share("Return to player", both.returns, before, "rtp", ""),
            _spread(both.returns, before),
        )
        yield Worth("Both together", figures)


def _returns(now: Returns, was: Returns | None) -> tuple[Figure, ...]:
    return (
        _share("Return to player", now, was, "rtp", "of all money staked"),
        _share("House edge", now, was, "house_edge", "of the Ante or Pair Bonus"),
        _share("Element of risk", now, was, "element_of_risk", "of all money staked"),
        _spread(now, was),
        _share("Hit frequency", now, was, "hit_frequency", "rounds that win"),
        _share("Pushes", now, was, "push_frequency", "rounds that return the stake"),
    )


def _play(new: Paytable, main: Returns, old: Paytable | None, was: Returns | None) -> Iterator[Figure]:
    best = MAX_EXPECTATION.decisions(new)
    hands, before = played(new, best), old and played(old, MAX_EXPECTATION.decisions(old))
    average, average_was = main.staked / main.deals, None if was is None else was.staked / was.deals
    yield Figure(
        "Average stake",
        decimal(average),
        number(odds_document(average)),
        "Ante and Play, in Antes",
        _difference(average, average_was),
    )
    around = _Z * rtp_sd(new, best) / sqrt(SAMPLE_ROUNDS)
    yield Figure(
        "Volatility",
        f"± {100 * around:.2f} %",
        note=f"return after {number(SAMPLE_ROUNDS)} rounds, 95 %",
    )
    yield Figure(
        "Lowest hand played",
        hands.lowest or "none",
        note="and every better hand" if hands.is_rank_threshold else "and some better hands",
        change=f"was {before.lowest or 'none'}" if before and before.lowest != hands.lowest else "",
    )
    yield Figure(
        "Hands played",
        number(hands.hands),
        note=f"of {number(HANDS)}: {100 * hands.hands / HANDS:.2f} %",
        change=_signed(hands.hands - before.hands) if before and before.hands != hands.hands else "",
    )


def _rounded(paytable: Paytable) -> Iterator[Figure]:
    """Where winnings are rounded down, what the smallest Ante returns: no figure above knows of stakes."""
    if paytable.rounding is not None:
        antes, _, _ = telling_stakes(paytable)
        rtp = main_game(paytable, stakes=Stakes(antes[0])).rtp
        yield Figure(
            f"Return at an Ante of {number(antes[0])}",
            percent(odds_document(rtp)),
            number(odds_document(rtp)),
            "winnings are rounded down; the other figures are without that",
        )


def _share(label: str, now: Returns, was: Returns | None, name: str, note: str) -> Figure:
    share: Fraction = getattr(now, name)
    before: Fraction | None = getattr(was, name, None)
    return Figure(
        label,
        percent(odds_document(share)),
        number(odds_document(share)),
        note,
        _difference(100 * share, None if before is None else 100 * before),
    )


def _spread(now: Returns, was: Returns | None) -> Figure:
    return Figure(
        "Standard deviation",
        decimal(now.sd),
        "",
        "of a round's net win",
        _difference(Fraction(now.sd), None if was is None else Fraction(was.sd)),
    )


def _difference(now: Fraction, was: Fraction | None) -> str:
    """How much more or less; shares are given in points of per cent."""
    if was is None or now == was:
        return ""
    return f"{'▲' if now > was else '▼'} {decimal(abs(now - was))}"


def _signed(change: int) -> str:
    return f"{'▲' if change > 0 else '▼'} {number(abs(change))}"
