"""Words become bounded integers without the slightest bias, or there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import Words

from casino_brag.rng import DEALS, OutOfRange, bounded, seeds
from casino_brag.rng.bounded import DISCARDS_MAX, WORDS, below
from casino_brag.rng.hmac_drbg import HmacDrbg

Word = Callable[[], int]
Bounded = Callable[[int, Word], tuple[int, int]]
LIMIT = WORDS - WORDS % DEALS
MOST = WORDS - 1

BOUNDARIES: list[tuple[Sequence[int], tuple[int, int]]] = [
    ([0], (0, 0)),
    ([1], (1, 0)),
    ([DEALS - 1], (DEALS - 1, 0)),
    ([DEALS], (0, 0)),
    ([2**8 + 3], (2**8 + 3, 0)),
    ([2**16 + 3], (2**16 + 3, 0)),
    ([2**32 + 3], (2**32 + 3, 0)),
    ([2**63 + 7], ((2**63 + 7) % DEALS, 0)),
    ([LIMIT - 1], (DEALS - 1, 0)),
    ([LIMIT, 5], (5, 1)),
    ([LIMIT + 1, 5], (5, 1)),
    ([MOST, 5], (5, 1)),
    ([MOST, LIMIT, MOST, LIMIT - 2], (DEALS - 2, 3)),
]
"""Words, and the integer below DEALS that must come of them, with the words discarded on the way."""


def mistakes(way: Bounded) -> list[Sequence[int]]:
    """The words for which a way to bound them does not do what it should."""
    wrong = []
    for chosen, expected in BOUNDARIES:
        words = Words(*chosen, 1, 1)
        if way(DEALS, words) != expected or words.taken != len(chosen):
            wrong.append(chosen)
    return wrong


def modulo_of(bits: int) -> Bounded:
    return lambda bound, word: (word() % 2**bits % bound, 0)


def scaled(bound: int, word: Word) -> tuple[int, int]:
    return int(word() / WORDS * bound), 0


def multiplied(bound: int, word: Word) -> tuple[int, int]:
    return word() * bound >> 64, 0


def undiscarded(bound: int, word: Word) -> tuple[int, int]:
    return word() % bound, 0


def discarding_from(limit_of: Callable[[int], int]) -> Bounded:
    def way(bound: int, word: Word) -> tuple[int, int]:
        discarded = 0
        while (value := word()) >= limit_of(bound):
            discarded += 1
        return value % bound, discarded

    return way


def never_the_first(bound: int, word: Word) -> tuple[int, int]:
    return word() % (bound - 1) + 1, 0


def never_the_last(bound: int, word: Word) -> tuple[int, int]:
    return word() % (bound - 1), 0


MUTANTS: dict[str, Bounded] = {
    "8-bit modulo": modulo_of(8),
    "16-bit modulo": modulo_of(16),
    "32-bit modulo": modulo_of(32),
    "float scaling": scaled,
    "multiply and shift": multiplied,
    "no discard": undiscarded,
    "limit one too high": discarding_from(lambda bound: WORDS - WORDS % bound + 1),
    "limit one too low": discarding_from(lambda bound: WORDS - WORDS % bound - 1),
    "never the first": never_the_first,
    "never the last": never_the_last,
}


def test_the_boundaries_are_exact() -> None:
    assert mistakes(below) == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_boundaries_show_each_known_mistake(mutant: str) -> None:
    """Statistics would miss several of them, however many deals were counted."""
    assert mistakes(MUTANTS[mutant]) != []


def test_the_mutants_differ_from_the_real_one_in_one_thing_only() -> None:
    assert mistakes(discarding_from(lambda bound: WORDS - WORDS % bound)) == []


def test_a_deal_is_bounded_at_the_same_boundaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are put where the generator of a deal gives its own: the rest is the way of every live round."""

    def dealt(bound: int, words: Word) -> tuple[int, int]:
        assert isinstance(words, Words)
        monkeypatch.setattr(HmacDrbg, "generate", lambda drbg, size, extra=b"": words.generate(size, extra))
        draw = seeds.deal(bytes(48), UUID(int=1), "00" * 32, None)
        return draw.index, draw.discards

    assert mistakes(dealt) == []


def test_every_bound_is_exactly_uniform_over_all_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """With words of one byte all of them can be tried: every result comes from equally many."""
    monkeypatch.setattr(bounded, "WORDS", 256)
    chosen = [word for low in range(128) for word in (255 - low, low)]  # never many discards in a row
    for bound in range(1, 257):
        words = Words(*chosen)
        seen: Counter[int] = Counter()
        discarded = 0
        while words.taken < 256:
            value, discards = below(bound, words)
            seen[value] += 1
            discarded += discards
        assert seen == dict.fromkeys(range(bound), 256 // bound), bound
        assert discarded == 256 % bound


@given(bound=st.integers(1, WORDS), value=st.integers(0, MOST))
def test_a_result_lies_below_its_bound_and_depends_on_the_word_alone(bound: int, value: int) -> None:
    words = Words(value, 0)
    expected = (value % bound, 0) if value < WORDS - WORDS % bound else (0, 1)
    assert below(bound, words) == expected
    assert words.taken == expected[1] + 1


def test_endless_discards_are_taken_for_a_broken_source() -> None:
    words = Words(*[MOST] * (DISCARDS_MAX + 1))
    with pytest.raises(OutOfRange, match="64 words in a row"):
        below(DEALS, words)
    assert words.taken == DISCARDS_MAX == 64


def test_the_last_word_that_is_tried_may_still_serve() -> None:
    assert below(DEALS, Words(*[MOST] * (DISCARDS_MAX - 1), 7)) == (7, DISCARDS_MAX - 1)


def test_a_word_is_discarded_less_often_than_once_in_two_thousand_million() -> None:
    assert WORDS % DEALS * 2_000_000_000 < WORDS


@pytest.mark.parametrize("bound", [0, -1, WORDS + 1])
def test_a_bound_that_no_word_can_serve_is_a_mistake_of_the_program(bound: int) -> None:
    words = Words(0)
    with pytest.raises(AssertionError):
        below(bound, words)
    assert words.taken == 0
