"""Words become bounded integers without the slightest bias, or there are none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import Kernel

from casino_brag.rng import DEALS, RngUnavailable, check_source, draw_deal, source
from casino_brag.rng.source import DISCARDS_MAX, WORDS, below, word

Bounded = Callable[[int], tuple[int, int]]
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


def mistakes(bounded: Bounded, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[int]]:
    """The words for which a way to bound them does not do what it should."""
    wrong = []
    for words, expected in BOUNDARIES:
        kernel = Kernel.giving(monkeypatch, *words, 1, 1)
        if bounded(DEALS) != expected or len(kernel.asked) != len(words):
            wrong.append(words)
    return wrong


def modulo_of(bits: int) -> Bounded:
    return lambda bound: (word() % 2**bits % bound, 0)


def scaled(bound: int) -> tuple[int, int]:
    return int(word() / WORDS * bound), 0


def multiplied(bound: int) -> tuple[int, int]:
    return word() * bound >> 64, 0


def undiscarded(bound: int) -> tuple[int, int]:
    return word() % bound, 0


def off_by_one(bound: int) -> tuple[int, int]:
    discarded = 0
    while (value := word()) > WORDS - WORDS % bound:
        discarded += 1
    return value % bound, discarded


def never_the_last(bound: int) -> tuple[int, int]:
    return word() % (bound - 1), 0


MUTANTS: dict[str, Bounded] = {
    "8-bit modulo": modulo_of(8),
    "16-bit modulo": modulo_of(16),
    "32-bit modulo": modulo_of(32),
    "float scaling": scaled,
    "multiply and shift": multiplied,
    "no discard": undiscarded,
    "limit off by one": off_by_one,
    "bound off by one": never_the_last,
}


def test_the_boundaries_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mistakes(below, monkeypatch) == []


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_boundaries_show_each_known_mistake(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics would miss several of them, however many deals were counted."""
    assert mistakes(MUTANTS[mutant], monkeypatch) != []


def test_a_deal_is_bounded_at_the_same_boundaries(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(bound: int) -> tuple[int, int]:
        draw = draw_deal()
        return draw.index, draw.discards

    assert mistakes(drawn, monkeypatch) == []


def test_every_bound_is_exactly_uniform_over_all_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """With words of one byte all of them can be tried: every result comes from equally many."""
    monkeypatch.setattr(source, "WORD_BYTES", 1)
    monkeypatch.setattr(source, "WORDS", 256)
    words = [word for low in range(128) for word in (255 - low, low)]  # never many discards in a row
    for bound in range(1, 257):
        kernel = Kernel.giving(monkeypatch, *words)
        seen: Counter[int] = Counter()
        discarded = 0
        while len(kernel.asked) < 256:
            value, discards = below(bound)
            seen[value] += 1
            discarded += discards
        assert seen == dict.fromkeys(range(bound), 256 // bound), bound
        assert discarded == 256 % bound


@given(bound=st.integers(1, WORDS), value=st.integers(0, MOST))
def test_a_result_lies_below_its_bound_and_depends_on_the_word_alone(bound: int, value: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        kernel = Kernel.giving(monkeypatch, value, 0)
        result, discards = below(bound)
        assert (result, discards) == ((value % bound, 0) if value < WORDS - WORDS % bound else (0, 1))
        assert kernel.asked == [(8, 0)] * (discards + 1)


def test_a_word_is_eight_bytes_from_a_kernel_that_may_wait_until_it_is_seeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = Kernel.giving(monkeypatch, 0x0102030405060708)
    assert word() == 0x0102030405060708
    assert kernel.asked == [(8, 0)]


def test_a_source_of_endless_discards_is_taken_for_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel.giving(monkeypatch, *[MOST] * (DISCARDS_MAX + 1))
    with pytest.raises(RngUnavailable, match="out of range"):
        draw_deal()
    assert len(kernel.asked) == DISCARDS_MAX


def test_the_last_word_that_is_tried_may_still_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    Kernel.giving(monkeypatch, *[MOST] * (DISCARDS_MAX - 1), 7)
    draw = draw_deal()
    assert (draw.index, draw.discards) == (7, DISCARDS_MAX - 1)


@pytest.mark.parametrize("ask", [word, draw_deal, check_source], ids=lambda ask: ask.__name__)
@pytest.mark.parametrize(
    "failure", [OSError(38, "not implemented"), BlockingIOError(), PermissionError()], ids=repr
)
def test_a_kernel_that_fails_leaves_no_other_source(
    ask: Callable[[], object], failure: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(size: int, flags: int = 0) -> bytes:
        raise failure

    monkeypatch.setattr(os, "getrandom", fail)
    with pytest.raises(RngUnavailable) as caught:
        ask()
    assert caught.value.__cause__ is failure


@pytest.mark.parametrize("answer", [b"", b"\0", b"\0" * 7, b"\0" * 9])
def test_an_answer_of_another_length_is_no_word(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getrandom", lambda size, flags=0: answer)
    with pytest.raises(RngUnavailable, match=f"gave {len(answer)} random bytes of 8"):
        word()


def test_a_second_failure_in_the_middle_of_a_draw_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([b"\xff" * 8, b""])
    monkeypatch.setattr(os, "getrandom", lambda size, flags=0: next(answers))
    with pytest.raises(RngUnavailable):
        draw_deal()
