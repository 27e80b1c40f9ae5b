"""Pictures of a paytable, made on the server as SVG: how its 22,100 hands are best played, and what rounds bring.

The strategy is drawn as a block for each highest card.  In a block, unsuited hands lie above the diagonal and suited
ones below; on the diagonal and along the top are the pairs, and in the corner the prial.  So each of the 741 shapes of
a hand has one square.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from casino_brag.game.cards import RANKS
from casino_brag.game.hands import RANK_CLASSES, Category, Shape, places
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules_text import CATEGORY_NAMES
from casino_brag.odds.outcomes import DEALER_HANDS, outcomes, rank_classes
from casino_brag.odds.pages.shown import number, percent
from casino_brag.odds.payoffs import MAIN, payoffs, whole_stakes
from casino_brag.odds.returns import main_game
from casino_brag.odds.strategies import MAX_EXPECTATION

CELL: Final = 14
_GAP: Final = 2
_MARGIN: Final = 18
_ROWS: Final = ((12, 11, 10), (9, 8, 7, 6), (5, 4, 3, 2, 1, 0))
"""The blocks of each row, by their highest card's rank."""
_STEPS: Final = (0.05, 0.2, 0.5, 1.0)
"""Where the five degrees of an advantage part, in Antes."""


@dataclass(frozen=True, slots=True)
class Block:
    """The hands of one highest card: where its squares begin, and how many stand in a line.

    `advantages` holds, line by line, thousandths of an Ante that playing is worth more than folding; blank for none.
    """

    rank: str
    ranks: str
    left: int
    top: int
    size: int
    advantages: str


@dataclass(frozen=True, slots=True)
class Row:
    """How the hands of one category are played, in words: shapes are None where there are none."""

    category: str
    hands: int
    played: int
    lowest_played: str | None
    highest_folded: str | None
    now_played: int
    now_folded: int


@dataclass(frozen=True, slots=True)
class StrategyMap:
    """The picture: blocks, and a path of squares for each mark (``play-1`` … ``fold-5``, ``mixed``, ``changed``)."""

    width: int
    height: int
    blocks: tuple[Block, ...]
    paths: Mapping[str, str]
    rows: tuple[Row, ...]
    hands_played: int
    hands_changed: int


@dataclass(frozen=True, slots=True)
class Bar:
    """How often one net result comes: shares of all deals, of this paytable and of the one in force."""

    net: str
    deals: str
    share: Fraction
    was: Fraction | None
    text: str


def strategy_map(paytable: Paytable, active: Paytable | None = None) -> StrategyMap:
    """How each hand is best played, and what changes against another paytable.

    >>> found = strategy_map(Paytable.load("paytables/three-card-brag.toml"))
    >>> found.hands_played, found.hands_changed, found.rows[0].lowest_played, found.rows[0].highest_folded
    (14900, 0, 'Q-6-4', 'Q-6-3')
    """
    advantage, plays = _of_hands(paytable)
    before = plays if active is None else _of_hands(active)[1]
    classes = rank_classes(paytable.ranking) - 1
    hands = _by_class(classes, np.ones(len(classes)))
    mean = _by_class(classes, advantage) / hands
    played = _by_class(classes, plays)
    changed = _by_class(classes, plays != before)
    shapes = list(places(paytable.ranking))
    blocks: list[Block] = []
    paths: dict[str, list[str]] = {}
    top, widest = _MARGIN, 0
    for ranks in _ROWS:
        left = _MARGIN
        for high in ranks:
            values = [[""] * (high + 1) for _ in range(high + 1)]
            for index, shape in enumerate(shapes):
                if shape.ranks[0] != high:
                    continue
                column, line = _place(shape)
                values[line][column] = str(round(1000 * mean[index]))
                x, y = left + column * CELL, top + line * CELL
                mark = _mark(float(mean[index]), int(played[index]), int(hands[index]))
                paths.setdefault(mark, []).append(_square(x, y))
                if mark.startswith("fold"):
                    paths.setdefault("stroke", []).append(f"M{x + 3} {y + 11}l8-8")
                if mark == "mixed":
                    paths.setdefault("half", []).append(
                        f"M{x} {y}h{CELL - _GAP}l-{CELL - _GAP} {CELL - _GAP}z"
                    )
                if changed[index]:
                    paths.setdefault("changed", []).append(_square(x, y))
            told = ",".join(value for row in values for value in row)
            blocks.append(Block(RANKS[high], RANKS[high::-1], left, top, high + 1, told))
            left += (high + 1) * CELL + _MARGIN
        widest = max(widest, left)
        top += (ranks[0] + 1) * CELL + 2 * _MARGIN
    return StrategyMap(
        widest,
        top - _MARGIN,
        tuple(blocks),
        {mark: "".join(squares) for mark, squares in paths.items()},
        tuple(_rows(paytable, hands, played, plays, before)),
        int(plays.sum()),
        int((plays != before).sum()),
    )


def distribution(paytable: Paytable, active: Paytable | None = None) -> tuple[Bar, ...]:
    """How often each net result of the main game comes, in Antes, from the greatest win down.

    >>> bars = distribution(Paytable.load("paytables/three-card-brag.toml"))
    >>> bars[0].net, bars[-1].net, bars[-1].text
    ('7', '−2', '22.380515 %')
    """
    now = main_game(paytable)
    was = None if active is None else main_game(active)
    before = {} if was is None else was.net_distribution
    nets = sorted({*now.net_distribution, *before}, reverse=True)
    return tuple(
        Bar(
            number(net),
            number(now.net_distribution.get(net, 0)),
            share := Fraction(now.net_distribution.get(net, 0), now.deals),
            None if was is None else Fraction(before.get(net, 0), was.deals),
            percent(share),
        )
        for net in nets
    )


@lru_cache(maxsize=64)
def _of_hands(paytable: Paytable) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """For each of the 22,100 hands: how much more playing is worth than folding, in Antes, and whether it is played."""
    counted = outcomes(paytable.ranking, paytable.qualifier)
    stakes = whole_stakes(paytable)
    worth = payoffs(paytable, stakes).net(MAIN).astype(np.float64)[counted.category]
    played = (counted.counts * worth[:, 1:]).sum(axis=1) / DEALER_HANDS
    advantage = (played - worth[:, 0]) / stakes.ante_minor
    return advantage[counted.kind], MAX_EXPECTATION.decisions(paytable)[counted.kind]


def _by_class(classes: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.float64]:
    return np.bincount(classes, weights=values, minlength=RANK_CLASSES).astype(np.float64)


def _place(shape: Shape) -> tuple[int, int]:
    """Column and line of a shape in the block of its highest card, which has the highest ranks first."""
    high, middle, low = shape.ranks
    across, down = (high - low, high - middle)
    return (down, across) if shape.suited else (across, down)


def _mark(advantage: float, played: int, hands: int) -> str:
    if 0 < played < hands:
        return "mixed"
    degree = 1 + sum(abs(advantage) >= step for step in _STEPS)
    return f"{'play' if played else 'fold'}-{degree}"


def _square(x: int, y: int) -> str:
    side = CELL - _GAP
    return f"M{x} {y}h{side}v{side}h-{side}z"


def _rows(
    paytable: Paytable,
    hands: NDArray[np.float64],
    played: NDArray[np.float64],
    plays: NDArray[np.bool_],
    before: NDArray[np.bool_],
) -> Iterator[Row]:
    placed = places(paytable.ranking)
    shapes = list(placed)
    category_of = np.array([list(Category).index(place.category) for place in placed.values()])
    of_hand = category_of[rank_classes(paytable.ranking) - 1]
    for category in paytable.ranking.categories:
        position = list(Category).index(category)
        inside, all_of = category_of == position, of_hand == position
        lowest = np.flatnonzero(inside & (played > 0))
        highest = np.flatnonzero(inside & (played < hands))
        yield Row(
            CATEGORY_NAMES[category],
            int(all_of.sum()),
            int(plays[all_of].sum()),
            str(shapes[lowest[0]]) if lowest.size else None,
            str(shapes[highest[-1]]) if highest.size else None,
            int((plays & ~before)[all_of].sum()),
            int((before & ~plays)[all_of].sum()),
        )
