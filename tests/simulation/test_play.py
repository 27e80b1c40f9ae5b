"""The kernels against each other, and against live rounds settled one by one."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from casino_brag.game.cards import PACK
from casino_brag.game.hands import AceLowRun, Category, Hand, Ranking, all_hands
from casino_brag.game.paytable import Paytable
from casino_brag.game.rules import Qualifier
from casino_brag.game.settlement import Deal, Decision, Result, Stakes, settle
from casino_brag.odds.outcomes import outcomes
from casino_brag.odds.strategies import Strategy
from casino_brag.rng.deal import DEALS, unrank
from casino_brag.simulation.mapper import LIMIT, words
from casino_brag.simulation.play import Kernel, Tables, play_words
from casino_brag.simulation.tally import CATEGORIES, RESULTS, Tally

BRAG = Paytable.load(Path(__file__).parents[2] / "paytables" / "three-card-brag.toml")
ODD = Ranking(tuple(reversed(Category)), best_prial=None, ace_low_run=AceLowRun.NOT_A_RUN)
PAYTABLES = [
    BRAG,
    replace(BRAG, qualifier=Qualifier.ANY),
    replace(BRAG, qualifier=Qualifier.PAIR, ranking=replace(BRAG.ranking, ace_low_run=AceLowRun.SECOND)),
    replace(BRAG, qualifier=Qualifier.ACE, ranking=ODD),
]
SEED = bytes(range(48))
every_kernel = pytest.mark.parametrize("kernel", Kernel)


def tables(paytable: Paytable, strategy: str = "max_expectation") -> Tables:
    return Tables.of(paytable.ranking, paytable.qualifier, Strategy.parse(strategy).decisions(paytable))


def play_chunk(
    made: Tables,
    chunk: int,
    rounds: int,
    *,
    stake_slots: int = 1,
    first_round: int = 0,
    kernel: Kernel = Kernel.NUMPY,
) -> Tally:
    return play_words(made, words(SEED, chunk), rounds, stake_slots, first_round, kernel)


def live(paytable: Paytable, drawn: list[int], stake_slots: int, first_round: int) -> Tally:
    """The tally of rounds dealt and settled by the live game's own functions."""
    counted = outcomes(paytable.ranking, paytable.qualifier)
    plays = Strategy.parse("max_expectation").decisions(paytable)
    cells = np.zeros((stake_slots, len(CATEGORIES), len(RESULTS)), dtype=np.int64)
    dealers = np.zeros(len(CATEGORIES), dtype=np.int64)
    kept = [word for word in drawn if word < LIMIT]
    for number, word in enumerate(kept, start=first_round):
        cards = [PACK[index] for index in unrank(word % DEALS)]
        deal = Deal(Hand.of(*cards[:3]), Hand.of(*cards[3:]))
        decision = Decision.PLAY if plays[counted.kind_of(deal.player)] else Decision.FOLD
        settled = settle(paytable, Stakes(100, 100), deal, decision)
        category, result = CATEGORIES.index(settled.player_category), RESULTS.index(settled.result)
        cells[number % stake_slots, category, result] += 1
        dealers[CATEGORIES.index(settled.dealer_category)] += 1
    return Tally(len(kept), cells, dealers, len(drawn) - len(kept))


@every_kernel
@pytest.mark.parametrize("paytable", PAYTABLES, ids=lambda paytable: paytable.qualifier)
def test_rounds_are_dealt_and_settled_as_live_ones(paytable: Paytable, kernel: Kernel) -> None:
    drawn = next(words(SEED, 3))[:2_000].tolist()
    expected = live(paytable, drawn, 3, first_round=10)
    assert play_chunk(tables(paytable), 3, 2_000, stake_slots=3, first_round=10, kernel=kernel) == expected


@every_kernel
def test_discarded_words_deal_no_round_and_those_after_the_last_were_not_drawn(kernel: Kernel) -> None:
    drawn = [LIMIT, 5, 2**64 - 1, LIMIT - 1, 0, LIMIT, 7]
    played = play_words(tables(BRAG), [np.array(drawn, dtype=np.uint64)], 3, 1, 0, kernel)
    assert played == live(BRAG, drawn[:5], 1, 0)
    assert (played.rounds, played.discards) == (3, 2)


@pytest.mark.parametrize("strategy", ["max_rtp", "always_play", "fold_below:pair"])
@pytest.mark.parametrize(
    ("rounds", "stake_slots"), [(1, 1), (8_191, 2), (8_192, 1), (8_193, 7), (300_000, 5)]
)
def test_the_kernels_agree_to_the_last_round(strategy: str, rounds: int, stake_slots: int) -> None:
    seen = [
        play_chunk(
            tables(BRAG, strategy),
            1,
            rounds,
            stake_slots=stake_slots,
            first_round=2**45 + 1,
            kernel=kernel,
        )
        for kernel in Kernel
    ]
    assert seen[0] == seen[1]
    assert seen[0].rounds == rounds


@every_kernel
def test_a_shorter_run_is_the_beginning_of_a_longer_one(kernel: Kernel) -> None:
    short = play_chunk(tables(BRAG), 1, 10_000, kernel=kernel)
    long = play_chunk(tables(BRAG), 1, 30_000, kernel=kernel)
    assert (long.outcomes >= short.outcomes).all()


def test_who_always_plays_never_folds() -> None:
    seen = play_chunk(tables(BRAG, "always_play"), 0, 10_000)
    assert seen.outcomes[:, :, RESULTS.index(Result.FOLD)].sum() == 0


def test_the_tables_know_every_hand_in_any_order() -> None:
    hands = tables(BRAG).hands
    for hand in all_hands()[::101]:
        a, b, c = (card.index for card in hand)
        code = int(hands[a, b, c])
        assert code >> 4 == BRAG.ranking.rank_class(hand)
        assert CATEGORIES[code >> 1 & 7] is BRAG.ranking.category(hand)
        assert {int(hands[order]) for order in ((a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a))} == {
            code
        }


def test_a_strategy_for_other_kinds_of_hands_is_refused() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        Tables.of(BRAG.ranking, BRAG.qualifier, np.ones(741, dtype=np.bool_))


def test_numba_is_imported_only_when_it_plays() -> None:
    import_all = "import sys, casino_brag.cli, casino_brag.simulation.play; print('numba' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", import_all], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout == "False\n"


def test_a_machine_with_nowhere_to_keep_compiled_code_compiles_anew(tmp_path: Path) -> None:
    """numba refuses to cache where neither the package's folder nor a home can be written."""
    script = (
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "from casino_brag.simulation.compiled import count\n"
        "print(count.stats.cache_path)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert told.stdout == "None\n"
