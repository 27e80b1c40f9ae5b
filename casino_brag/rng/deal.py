"""The ordered deal of six cards from a pack of 52, as one integer.

The index's mixed-radix digits (52, 51, 50, 49, 48, 47) are the picks of a partial Fisher-Yates shuffle, so that
all 14,658,134,400 ordered deals stand for one index each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import perm
from typing import Final

PACK_SIZE: Final = 52
CARDS_DEALT: Final = 6
DEALS: Final = perm(PACK_SIZE, CARDS_DEALT)


@dataclass(frozen=True, slots=True)
class Draw:
    """A deal: its index in [0, DEALS), and how many words were discarded to get it."""

    index: int
    discards: int

    @property
    def cards(self) -> tuple[int, ...]:
        """Six distinct card numbers in [0, 52), in the order dealt."""
        return unrank(self.index)


def unrank(index: int, *, pack: int = PACK_SIZE, cards: int = CARDS_DEALT) -> tuple[int, ...]:
    """The deal with this index: `cards` distinct numbers in [0, pack), in the order dealt.

    `ValueError` for an index that is out of range.

    >>> unrank(0)
    (0, 1, 2, 3, 4, 5)
    >>> unrank(DEALS - 1)
    (51, 0, 1, 2, 3, 4)
    """
    if not 0 <= index < perm(pack, cards):
        raise ValueError(f"a deal's index lies in [0, {perm(pack, cards)})")
    picks = []
    for radix in range(pack - cards + 1, pack + 1):
        index, pick = divmod(index, radix)
        picks.append(pick)
    picks.reverse()
    remaining = list(range(pack))
    dealt = []
    for place, pick in enumerate(picks):
        chosen = place + pick
        remaining[place], remaining[chosen] = remaining[chosen], remaining[place]
        dealt.append(remaining[place])
    return tuple(dealt)


def rank(dealt: tuple[int, ...], *, pack: int = PACK_SIZE) -> int:
    """The index of a deal: the inverse of `unrank`.

    `ValueError` for numbers that are out of range or repeated.

    >>> rank(unrank(12_345_678_901))
    12345678901
    """
    if len(set(dealt)) != len(dealt) or not all(0 <= card < pack for card in dealt):
        raise ValueError(f"a deal is of distinct numbers in [0, {pack})")
    remaining = list(range(pack))
    index = 0
    for place, card in enumerate(dealt):
        chosen = remaining.index(card, place)
        index = index * (pack - place) + chosen - place
        remaining[place], remaining[chosen] = remaining[chosen], remaining[place]
    return index
