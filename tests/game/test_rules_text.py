from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from casino_brag.game.hands import AceLowRun, Category
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import (
    AnteBonus,
    BonusPaid,
    NotQualified,
    OnFold,
    PairBonus,
    Qualifier,
    Rounding,
    TieResult,
    Unqualified,
)
from casino_brag.game.rules_text import rules_in_words

PAYTABLES = Path(__file__).parents[2] / "paytables"
BRAG = Paytable.load(PAYTABLES / "three-card-brag.toml")
DOUBLE_PLAY = Paytable.load(PAYTABLES / "double-play-brag.toml")
assert BRAG.ante_bonus is not None
assert BRAG.pair_bonus is not None


def text_of(paytable: Paytable) -> str:
    sections = rules_in_words(paytable)
    return "\n".join(line for section in sections for line in (section.title, *section.paragraphs))


RANKING, BONUS, PAIR_BONUS = BRAG.ranking, BRAG.ante_bonus, BRAG.pair_bonus

OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({}, "The dealer qualifies with queen high or better."),
    ({}, "a Play wager equal to your Ante"),
    ({}, "the Ante is paid 1 to 1 and the Play is returned, even where the dealer's hand is better"),
    ({}, "If the hands are equal, the Ante and the Play are returned."),
    ({}, "The best prial is three threes, then aces, then kings and so on down to twos."),
    ({}, "The best run or running flush is A-2-3, then A-K-Q"),
    ({}, "Whenever you have played, whatever the dealer holds"),
    ({}, "prial 40 to 1, running flush 30 to 1, run 6 to 1, flush 4 to 1, pair 1 to 1"),
    ({}, "If you fold, the Pair Bonus is lost too"),
    ({}, "Every allowed stake is paid exactly."),
    ({"qualifier": Qualifier.ANY}, "The dealer's hand always counts."),
    ({"qualifier": Qualifier.PAIR}, "The dealer qualifies with a pair or better."),
    ({"play_multiple": 3}, "a Play wager 3 times your Ante"),
    (
        {"not_qualified": NotQualified(Unqualified.PUSH, Unqualified.WINS)},
        "the Ante is returned and the Play is paid",
    ),
    ({"tie": TieResult.DEALER}, "If the hands are equal, the Ante and the Play are lost."),
    ({"tie": TieResult.PLAYER}, "If the hands are equal, you win the tie: the Ante is paid 1 to 1"),
    ({"ante_pays": Fraction(3, 2)}, "the Ante is paid 3 to 2"),
    (
        {"ranking": replace(RANKING, best_prial=None)},
        "three aces, then kings, then queens and so on down to twos",
    ),
    (
        {"ranking": replace(RANKING, best_prial="2")},
        "three twos, then aces, then kings and so on down to threes",
    ),
    ({"ranking": replace(RANKING, ace_low_run=AceLowRun.SECOND)}, "is A-K-Q, then A-2-3, then K-Q-J"),
    ({"ranking": replace(RANKING, ace_low_run=AceLowRun.LOWEST)}, "down to 4-3-2, and last A-2-3"),
    ({"ranking": replace(RANKING, ace_low_run=AceLowRun.NOT_A_RUN)}, "A-2-3 is not a run"),
    (
        {"ante_bonus": replace(BONUS, paid=BonusPaid.NOT_BEATEN)},
        "unless a qualified dealer has the better hand",
    ),
    (
        {"ante_bonus": replace(BONUS, paid=BonusPaid.WIN)},
        "and beat the dealer or the dealer does not qualify",
    ),
    ({"pair_bonus": replace(PAIR_BONUS, on_fold=OnFold.SETTLED)}, "settled on your cards all the same"),
    ({"rounding": Rounding.DOWN}, "rounded down to the currency's smallest unit"),
]


@pytest.mark.parametrize(("options", "sentence"), OPTIONS)
def test_each_option_has_its_words(options: dict[str, Any], sentence: str) -> None:
    assert sentence in text_of(replace(BRAG, **options))


def test_options_that_differ_read_differently() -> None:
    texts = {text_of(replace(BRAG, **options)) for options, _ in OPTIONS}
    assert len(texts) == 1 + sum(bool(options) for options, _ in OPTIONS)


def test_categories_are_listed_best_first() -> None:
    order = next(section for section in rules_in_words(BRAG) if section.title == "The order of hands")
    names = [line.split(": ")[0] for line in order.paragraphs[1:7]]
    assert names == ["1. Prial", "2. Running flush", "3. Run", "4. Flush", "5. Pair", "6. High card"]


def test_every_paying_hand_is_named_with_its_odds() -> None:
    paytable = replace(
        BRAG,
        ante_bonus=AnteBonus(BonusPaid.ALWAYS, {Category.FLUSH: Fraction(7)}),
        pair_bonus=PairBonus(OnFold.LOST, {Category.HIGH_CARD: Fraction(1, 9)}),
    )
    assert "It pays on the Ante: flush 7 to 1." in text_of(paytable)
    assert "It pays on your own three cards: high card 1 to 9." in text_of(paytable)


def test_odds_by_the_hand_are_all_given_for_the_play() -> None:
    assert "the Play by your hand (prial 5 to 1, running flush 4 to 1, run 1 to 1," in text_of(DOUBLE_PLAY)


def test_a_game_without_bonuses_does_not_mention_them() -> None:
    assert "Bonus" not in text_of(replace(BRAG, ante_bonus=None, pair_bonus=None))
