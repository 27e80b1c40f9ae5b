"""The tests of deals are tested: a sound dealer passes them, and every known faulty one that they can see fails."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casino_brag.laboratory.judging import Conclusion, judge
from casino_brag.laboratory.statistics import (
    CATEGORIES,
    DEALS_MIN,
    categories,
    category_chances,
    deal_tests,
    index_ranges,
    indexes,
)
from casino_brag.rng.deal import DEALS, rank, unrank
from casino_brag.simulation.mapper import LIMIT, Cards, Words, deals, words

MILLION = 1_000_000
SEED = 20_261_130


def drawn(rounds: int, stream: int = 0) -> Words:
    """Words of a sound generator, the same every time."""
    blocks = islice(words(bytes([stream]) * 48, 0), rounds // 8_192 + 2)
    return np.concatenate(list(blocks))[:rounds]


def conclusion(cards: Cards) -> Conclusion:
    tests = deal_tests(cards)
    return judge(tests, lambda names: [test for test in tests if test.name in names]).conclusion


def dealt(picks: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]) -> Cards:
    """What a shuffle deals that exchanges the card at each place with the one at its pick, place after place."""
    rounds = np.arange(len(picks[0]))
    packs = np.tile(np.arange(52, dtype=np.uint8), (len(rounds), 1))
    for place, chosen in enumerate(picks):
        moved = packs[:, place].copy()
        packs[:, place] = packs[rounds, chosen]
        packs[rounds, chosen] = moved
    return np.ascontiguousarray(packs[:, :6].T)


def eight_bit_modulo() -> Cards:
    """A byte modulo the number of cards left."""
    source = np.random.default_rng(SEED)
    return dealt([place + source.integers(0, 256, 200_000) % (52 - place) for place in range(6)])


def sattolo() -> Cards:
    """A cyclic shuffle: no card stays where it is."""
    source = np.random.default_rng(SEED)
    return dealt([source.integers(place + 1, 52, DEALS_MIN) for place in range(6)])


def off_by_one() -> Cards:
    """The last card of the pack is never picked."""
    source = np.random.default_rng(SEED)
    return dealt([source.integers(place, 51, DEALS_MIN) for place in range(6)])


def any_to_any() -> Cards:
    """Each place is exchanged with any place of the pack, those before it among them."""
    source = np.random.default_rng(SEED)
    return dealt([source.integers(0, 52, 200_000) for _ in range(52)])


def few_seeds() -> Cards:
    """A good mixing function, on seeds of 32 bits."""
    mixed = np.random.default_rng(SEED).integers(0, 1 << 32, MILLION, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return deals(mixed[mixed < LIMIT])


def rounds_repeated() -> Cards:
    """One round in ten thousand is dealt again."""
    sequence = drawn(MILLION)
    sequence[10_000::10_000] = sequence[9_999:-1:10_000]
    return deals(sequence)


def forked() -> Cards:
    """Two processes that share their generator's state, dealing in turn."""
    return deals(np.repeat(drawn(DEALS_MIN), 2))


def counted_on() -> Cards:
    """Each deal's index is the one before plus a constant."""
    steps = np.arange(DEALS_MIN, dtype=np.uint64)
    return deals(steps * np.uint64(9_059_225_312) % np.uint64(DEALS))


def not_returned() -> Cards:
    """The cards of a round are not returned to the pack before the next."""
    source = np.random.default_rng(SEED)
    rounds = [source.permutation(52)[:6].tolist()]
    for _ in range(DEALS_MIN):
        left = [card for card in range(52) if card not in rounds[-1]]
        rounds.append(source.permutation(left)[:6].tolist())
    return np.array(rounds, dtype=np.uint8).T.copy()


def compensated() -> Cards:
    """A player who held a pair or better holds nothing in the round after."""
    cards = deals(drawn(200_000))
    ranks = np.sort(cards[:3] // 4, axis=0)
    paired = (ranks[0] == ranks[1]) | (ranks[1] == ranks[2])
    kept = ~(paired & np.roll(paired, 1))
    return np.ascontiguousarray(cards[:, kept])


def repeated_card() -> Cards:
    """Once, a card is dealt twice in a round."""
    cards = deals(drawn(DEALS_MIN))
    cards[4, 17] = cards[1, 17]
    return cards


FAULTY: list[Callable[[], Cards]] = [
    eight_bit_modulo,
    sattolo,
    off_by_one,
    any_to_any,
    few_seeds,
    rounds_repeated,
    forked,
    counted_on,
    not_returned,
    compensated,
    repeated_card,
]


@pytest.mark.parametrize("dealer", FAULTY, ids=lambda dealer: dealer.__name__)
def test_a_faulty_dealer_fails(dealer: Callable[[], Cards]) -> None:
    cards = dealer()
    assert cards.shape[1] <= MILLION
    assert conclusion(cards) is Conclusion.FAILS


@pytest.mark.parametrize("stream", range(3))
def test_a_sound_dealer_passes(stream: int) -> None:
    assert conclusion(deals(drawn(MILLION, stream))) is Conclusion.PASSES


def test_p_values_of_a_sound_dealer_are_even() -> None:
    """Over forty samples, every test but the rare event of a repeated deal: a tenth of all p-values below a tenth."""
    found = [
        test.p
        for stream in range(40)
        for test in deal_tests(deals(drawn(DEALS_MIN, 100 + stream)))
        if test.law != "Poisson"
    ]
    for share in (0.1, 0.5, 0.9):
        assert np.mean(np.array(found) < share) == pytest.approx(share, abs=0.05)


def test_small_seed_spaces_show_in_repeated_deals_alone() -> None:
    tests = deal_tests(few_seeds())
    assert [test.name for test in tests if test.p < 1e-6] == ["deals dealt twice"]


def test_too_few_deals_decide_nothing() -> None:
    with pytest.raises(ValueError, match="30,000"):
        deal_tests(deals(drawn(DEALS_MIN - 1)))


@given(index=st.integers(0, DEALS - 1))
def test_indexes_are_those_of_the_module(index: int) -> None:
    cards = np.array([unrank(index)], dtype=np.uint8).T
    assert indexes(cards).tolist() == [index] == [rank(unrank(index))]


def test_indexes_fall_into_equal_ranges() -> None:
    ends = np.array([0, DEALS // 1_000, DEALS - 1], dtype=np.int64)
    assert np.flatnonzero(index_ranges(ends)).tolist() == [0, 999]
    assert index_ranges(ends)[0] == 2


def test_category_chances_are_counts_over_all_hands() -> None:
    counts = (category_chances() * 22_100).round().astype(int).tolist()
    assert dict(zip(CATEGORIES, counts, strict=True)) == {
        "high_card": 16_440,
        "pair": 3_744,
        "flush": 1_096,
        "run": 720,
        "running_flush": 48,
        "prial": 52,
    }


def test_categories_are_counted_for_player_and_dealer() -> None:
    #  As Ah Ad against 2c 3c 4c, then 2c 3c 4c against As Ah Ad.
    prial, running = (51, 50, 49), (0, 4, 8)
    player, dealer = categories(np.array([prial + running, running + prial], dtype=np.uint8).T.copy())
    assert player.tolist() == dealer.tolist() == [0, 0, 0, 0, 1, 1]
