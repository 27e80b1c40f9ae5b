"""Three Card Poker, whose figures others have published, by the same enumeration as the games in ``paytables/``.

Three Card Poker is the same game with another order of hands.  If the enumeration gives its published figures, then
what it gives for a paytable of ours rests on the paytable alone.  Exit status 1 when a figure differs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from figures import Game, main_figures, pair_bonus_figures
from rules import claim_holds

WIZARD = "Wizard of Odds (M. Shackleford), Three Card Poker, wizardofodds.com/games/three-card-poker"
RISK = "J. Grochowski, Why ante-play is better than Pair Plus bet, Atlantic City Weekly"
HANDS = "J. Grochowski, Three Card Poker and Pair Plus, Casino City Times, 8 July 2021"

THREE_CARD_POKER: dict[str, Any] = {
    "game": "three-card-poker",
    "title": "Three Card Poker",
    "ranking": {
        "categories": ["high_card", "pair", "flush", "run", "prial", "running_flush"],
        "ace_low_run": "lowest",
    },
    "dealer": {"qualifies_with": "Q", "not_qualified": {"ante": "wins", "play": "push"}},
    "play": {
        "multiple": 1,
        "pays": {"high_card": 1, "pair": 1, "flush": 1, "run": 1, "running_flush": 1, "prial": 1},
    },
    "ante": {"pays": 1},
    "tie": {"result": "push"},
    "ante_bonus": {"paid": "always", "pays": {"running_flush": 5, "prial": 4, "run": 1}},
}
HAND_COUNTS = {"running_flush": 48, "prial": 52, "run": 720, "flush": 1096, "pair": 3744, "high_card": 16440}
PAIR_PLUS = {  # pays for running flush, prial, run, flush, pair: the published house edge
    (40, 30, 6, 4, 1): "2.32 %",
    (35, 33, 6, 4, 1): "2.70 %",
    (40, 25, 6, 4, 1): "3.49 %",
    (35, 25, 6, 4, 1): "4.58 %",
    (40, 30, 5, 4, 1): "5.57 %",
    (40, 25, 5, 4, 1): "6.75 %",
    (40, 30, 6, 3, 1): "7.28 %",
}


class Comparison(NamedTuple):
    """A published figure beside ours."""

    figure: str
    published: str
    computed: str
    agrees: bool
    source: str


def comparisons() -> Iterator[Comparison]:
    """Every published figure, compared to the digits it was published with."""
    game = Game.of(THREE_CARD_POKER)
    hands = Counter(game.ranked.category)
    for category, published in HAND_COUNTS.items():
        computed = hands[category]
        yield Comparison(f"hands, {category}", str(published), str(computed), computed == published, HANDS)
    main = main_figures(game, "max_expectation", game.strategy("max_expectation"))
    lowest, threshold = (main["strategy"][key] for key in ("lowest_hand_played", "is_rank_threshold"))
    yield Comparison("play this hand or better", "Q-6-4", lowest, threshold and lowest == "Q-6-4", WIZARD)
    yield percentage("house edge", "3.37 %", main["house_edge_exact"], WIZARD)
    yield percentage("element of risk", "2.01 %", main["element_of_risk_exact"], RISK)
    for pays, edge in PAIR_PLUS.items():
        by_category = dict(zip(HAND_COUNTS, pays, strict=False))
        paytable = THREE_CARD_POKER | {"pair_bonus": {"on_fold": "lost", "pays": by_category}}
        bonus = pair_bonus_figures(Game.of(paytable))
        assert bonus is not None
        figure = f"house edge, Pair Plus {'-'.join(map(str, pays))}"
        yield percentage(figure, edge, bonus["house_edge_exact"], WIZARD)


def percentage(figure: str, published: str, exactly: int | str, source: str) -> Comparison:
    """Compare one of the percentages."""
    computed = Fraction(exactly)
    shown = f"{float(computed):.6%} = {computed}"
    return Comparison(figure, published, shown, claim_holds(published, computed), source)


def main() -> int:
    """Print the comparisons and the verdict; 1 when one fails."""
    found = list(comparisons())
    sources = list(dict.fromkeys(row.source for row in found))
    for row in found:
        verdict = "agrees" if row.agrees else "DIFFERS"
        number = sources.index(row.source) + 1
        print(f"{row.figure:<35}{row.published:<8}[{number}]  {row.computed:<32}{verdict}")
    for number, source in enumerate(sources, start=1):
        print(f"[{number}] {source}")
    differing = sum(not row.agrees for row in found)
    print(f"{len(found) - differing} of {len(found)} published figures agree")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
