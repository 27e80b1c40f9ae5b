"""The return to player of some days, read from what was added up: by version, stake band, channel and operator.

Everything is of real play that was no test, by wager and by currency; sums are in minor units.  All figures are texts
or whole numbers, so that their document is the same wherever it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import isinf
from typing import Any, Final

import numpy as np
import psycopg
from psycopg.rows import dict_row

from casino_brag.catalogue.paytables import PaytableVersion
from casino_brag.game.hands import Category
from casino_brag.game.paytable import Paytable
from casino_brag.odds.returns import main_game, pair_bonus_game, rtp_sd
from casino_brag.odds.strategies import MAX_EXPECTATION
from casino_brag.rounds.reports import NO_DATA, rtp
from casino_brag.watch.bands import SUMMED, Comparison, Sums, band_floors, conditional, raw
from casino_brag.watch.dealt import CARDS_DEALT, PACK_SIZE, Dealt, category_chances, fits
from casino_brag.watch.expectation import Rules


class By(StrEnum):
    """What rounds are told apart by, beside wager and currency."""

    VERSION = "version"
    """Nothing: all of the paytable version."""
    STAKE_BAND = "stake_band"
    """The size of the Ante, or of the Pair Bonus."""
    CHANNEL = "channel"
    """The channel that the operator named with the session."""
    OPERATOR = "operator"
    """Whose players they are."""


class Verdict(StrEnum):
    """What a return to player says at one look."""

    WITHIN_95 = "within 95 %"
    """It misses what it should be by no more than it does in 95 of 100 cases."""
    OUTSIDE_95 = "outside 95 %"
    """By more than that, as in 1 of 20."""
    OUTSIDE_99 = "outside 99 %"
    """By more than it does in 99 of 100."""
    TOO_FEW = "too few rounds"
    """Rounds are not enough to tell."""
    NO_DATA = NO_DATA
    """There were no rounds."""


@dataclass(frozen=True, slots=True)
class Theory:
    """What a wager returns on all money staked under the strategy named in the rules, and how one round spreads."""

    rtp: Fraction
    sd: float
    skewness: float


@lru_cache(maxsize=64)
def theories(paytable: Paytable) -> dict[str, Theory]:
    """The wagers that a paytable offers."""
    main, bonus = main_game(paytable), pair_bonus_game(paytable)
    sd = rtp_sd(paytable, MAX_EXPECTATION.decisions(paytable))
    found = {"main": Theory(main.rtp, sd, main.skewness)}
    if bonus is not None:
        found["pair_bonus"] = Theory(bonus.rtp, bonus.sd, bonus.skewness)
    return found


SUMS: Final = ", ".join(f"sum(b.{name}) AS {name}" for name in SUMMED)
"""The sums of buckets `b`, as `sums_of` reads them."""

_FIGURES: Final = f"""
    SELECT b.wager, b.currency, b.stake_band, b.channel, o.name AS operator, {SUMS},
        CASE grouping(b.stake_band, b.channel, o.name)
            WHEN 3 THEN 'stake_band' WHEN 5 THEN 'channel' WHEN 6 THEN 'operator' ELSE 'version' END AS by
    FROM rtp_bucket AS b JOIN operator AS o USING (operator_id)
    WHERE b.paytable_version_id = %s AND b.play = 'real' AND b.day BETWEEN %s AND %s
    GROUP BY GROUPING SETS ((b.wager, b.currency), (b.wager, b.currency, b.stake_band),
        (b.wager, b.currency, b.channel), (b.wager, b.currency, o.name))
    HAVING sum(b.rounds) > 0
    ORDER BY b.wager, b.currency, by DESC, b.stake_band, b.channel NULLS FIRST, o.name
"""  # noqa: S608 - no value is in the text


def figures(
    conn: psycopg.Connection[Any], version: PaytableVersion, since: date, until: date
) -> list[dict[str, Any]]:
    """The figures of a version from one day to another, both included; of a wager that nobody made: no data."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_FIGURES, [version.version_id, since, until]).fetchall()
    found = []
    for wager in theories(version.paytable):
        of_wager = [_figure(version.paytable, row) for row in rows if row["wager"] == wager]
        found += of_wager or [no_data(wager)]
    return found


def no_data(wager: str) -> dict[str, Any]:
    """What is told of a wager that nobody made."""
    return {"by": By.VERSION.value, "value": None, "wager": wager, "currency": None, "rounds": 0} | {
        "actual_rtp": rtp(0, 0),
        "verdict": Verdict.NO_DATA.value,
    }


def _figure(paytable: Paytable, row: dict[str, Any]) -> dict[str, Any]:
    sums, theory = sums_of(row), theories(paytable)[row["wager"]]
    by = By(row["by"])
    value = _band(paytable, row) if by is By.STAKE_BAND else row.get(by.value)
    named = {"by": by.value, "value": value, "wager": row["wager"], "currency": row["currency"]}
    return named | compared(sums, theory)


def sums_of(row: dict[str, Any]) -> Sums:
    """The sums of a row, whose type in the database is one for any size."""
    return Sums(*(int(row[name]) for name in SUMMED))


def compared(sums: Sums, theory: Theory) -> dict[str, Any]:
    """Sums beside a theory, and beside what the rules let expect of the hands and decisions there were.

    `verdict` is of the latter: players' skill has no part in it.
    """
    by_theory, given = raw(sums, theory.rtp, theory.sd, theory.skewness), conditional(sums, theory.skewness)
    return {
        "rounds": sums.rounds,
        "staked_minor": sums.staked_minor,
        "returned_minor": sums.returned_minor,
        "actual_rtp": rtp(sums.staked_minor, sums.returned_minor),
        "theoretical_rtp": {"value": f"{float(theory.rtp):.8f}", "exact": str(theory.rtp)},
        "against_theory": _comparison(by_theory),
        "given_cards_and_decisions": _comparison(given),
        "verdict": verdict(given).value,
    }


def _comparison(found: Comparison) -> dict[str, str]:
    return {
        "expected_rtp": f"{float(found.expected):.8f}",
        "tolerance_95": f"{found.tolerance(0.95):.8f}",
        "tolerance_99": f"{found.tolerance(0.99):.8f}",
        "z": "infinite" if isinf(found.z) else f"{found.z:.3f}",
        "verdict": verdict(found).value,
    }


def verdict(found: Comparison) -> Verdict:
    """What a comparison says at one look.

    >>> verdict(Comparison(Fraction(97, 100), Fraction(98, 100), 0.004, True)).value
    'outside 95 %'
    """
    if found.sd and not found.enough:
        return Verdict.TOO_FEW
    missed = abs(float(found.actual - found.expected))
    if missed > found.tolerance(0.99):
        return Verdict.OUTSIDE_99
    return Verdict.OUTSIDE_95 if missed > found.tolerance(0.95) else Verdict.WITHIN_95


def _band(paytable: Paytable, row: dict[str, Any]) -> str:
    """The stakes of a band, in minor units."""
    limits = paytable.limits[row["currency"]]
    of_wager = limits.ante if row["wager"] == "main" or limits.pair_bonus is None else limits.pair_bonus
    floors = band_floors(of_wager.min_minor)
    band = row["stake_band"]
    return f"{floors[band]}-{floors[band + 1] - 1}" if band + 1 < len(floors) else f"{floors[band]}-"


def dealt_in(
    conn: psycopg.Connection[Any], version: PaytableVersion, since: date, until: date
) -> dict[str, Any]:
    """What was dealt from one day to another, both included: categories beside their chances, and tests of fit."""
    rows = conn.execute(
        "SELECT player_categories, dealer_categories, cards FROM rtp_dealt"
        " WHERE paytable_version_id = %s AND play = 'real' AND day BETWEEN %s AND %s",
        [version.version_id, since, until],
    ).fetchall()
    dealt = Dealt.none()
    for player, dealer, cards in rows:
        shaped = np.array(cards, dtype=np.int64).reshape(CARDS_DEALT, PACK_SIZE)
        dealt += Dealt(np.array(player, dtype=np.int64), np.array(dealer, dtype=np.int64), shaped)
    rules = Rules.of(version.paytable)
    return {
        "rounds": dealt.rounds,
        "categories": list(_categories(dealt, rules)) if dealt.rounds else NO_DATA,
        "fits": [
            {
                "of": fit.name,
                "chi_square": f"{fit.chi_square:.3f}",
                "degrees": fit.degrees,
                "p": f"{fit.p:.6f}",
            }
            for fit in fits(dealt, rules)
        ],
    }


def _categories(dealt: Dealt, rules: Rules) -> Iterator[dict[str, Any]]:
    chances = category_chances(rules).tolist()
    for whose, counts in (("player", dealt.player), ("dealer", dealt.dealer)):
        for category, count, chance in zip(Category, counts.tolist(), chances, strict=True):
            expected = f"{chance * dealt.rounds:.2f}"
            yield {"hand": whose, "category": category.value, "counted": count, "expected": expected}
